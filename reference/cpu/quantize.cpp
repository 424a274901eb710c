// Scaled copies in 8 and 4 bits. A thread works on runs of f32 that stay in the first-level cache; numbers are encoded
// by integer arithmetic on their bits, without branches.
#include "reference/ops/quantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "reference/cpu/block_io.h"
#include "reference/cpu/encodings.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"

namespace gpubench::cpu {
namespace {

/// Largest magnitude of x, and its 8-bit values where these are wanted.
struct QuantizeWork {
  int threads = 1;
  std::int64_t elements = 0;
  Narrow to{};
  bool streaming = false;  ///< of the values
  Source x;
  const float* scale = nullptr;
  std::uint8_t* values = nullptr;
  float* inverse = nullptr;
  float* amax = nullptr;
  std::uint32_t* partial = nullptr;  ///< [parts]

  [[nodiscard]] int parts() const { return chunk_count(threads, elements, element_grain); }

  void operator()() const {
    parallel_chunks(threads, parts(), 1, [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t part = begin; part < end; ++part) partial[part] = run_part(static_cast<int>(part));
    });
    *amax = std::bit_cast<float>(*std::max_element(partial, partial + parts()));
    if (inverse != nullptr) *inverse = 1.0F / *scale;
  }

  [[nodiscard]] std::uint32_t run_part(int part) const {
    const Chunk chunk = chunk_of(elements, element_grain, parts(), part);
    BlockBuffer buffer;
    alignas(64) std::array<std::uint8_t, block_elements> codes;
    std::uint32_t largest = 0;
    for (std::int64_t first = chunk.begin; first < chunk.end; first += block_elements) {
      const std::int64_t count = std::min(block_elements, chunk.end - first);
      const float* run = x.read(first, count, buffer);
      largest = std::max(largest, encodings().largest(run, count));
      if (values == nullptr) continue;
      encodings().encode(run, *scale, count, to, codes.data());
      move_bytes(reinterpret_cast<std::byte*>(values + first), reinterpret_cast<const std::byte*>(codes.data()), count,
                 streaming);
    }
    stream_fence();
    return largest;
  }
};

struct ScaleWork {
  ScaleFromAmax attributes;
  std::int64_t count = 0;
  const float* history = nullptr;
  float* scale = nullptr;

  // By exponents; one less where the significand of the largest is above 1.75, that of the types' largest numbers.
  void operator()() const {
    const float largest = std::bit_cast<float>(encodings().largest(history, count));
    *scale = 1.0F;
    if (!(largest > 0.0F && std::isfinite(largest))) return;
    const int exponent = std::ilogb(largest);
    const int room = std::ilogb(largest_finite(attributes.to)) - attributes.margin;
    const int power = room - exponent - (std::ldexp(largest, -exponent) > 1.75F ? 1 : 0);
    *scale = std::ldexp(1.0F, std::clamp(power, -126, 127));
  }
};

struct BlocksWork {
  int threads = 1;
  std::int64_t elements = 0, block = 32;
  QuantizeBlocks attributes;
  Narrow to{};
  std::uint32_t of_type = 0;  ///< exponent of the type's largest number
  bool streaming = false;     ///< of the values
  Source x;
  const float* scale = nullptr;  ///< of the tensor, for nvfp4
  std::uint8_t* values = nullptr;
  std::uint8_t* scales = nullptr;

  void operator()() const {
    parallel_chunks(threads, elements, element_grain, [this](std::int64_t begin, std::int64_t end) {
      for (std::int64_t first = begin; first < end; first += block_elements)
        run_blocks(first, std::min(block_elements, end - first));
      stream_fence();
    });
  }

  void run_blocks(std::int64_t first, std::int64_t count) const {
    BlockBuffer buffer, scaled;
    BlockScales of;
    alignas(64) std::array<std::uint8_t, block_elements> codes, halves;
    const float* run = x.read(first, count, buffer);
    const std::int64_t blocks = count / block;
    scale_blocks(run, blocks, of, scaled.values.data());
    encodings().encode(scaled.values.data(), 1.0F, count, to, codes.data());
    for (std::int64_t b = 0; b < blocks; ++b) {
      if (of.largest[static_cast<std::size_t>(b)] >= infinity_bits)
        std::fill_n(codes.begin() + b * block, block, static_cast<std::uint8_t>(to.nan));
    }
    std::copy_n(of.codes.begin(), blocks, scales + first / block);
    const bool packed = to.sign == 8U;
    if (packed) encodings().pack_halves(codes.data(), count, halves.data());
    const std::int64_t at = packed ? first / 2 : first, bytes = packed ? count / 2 : count;
    const auto* from = reinterpret_cast<const std::byte*>(packed ? halves.data() : codes.data());
    move_bytes(reinterpret_cast<std::byte*>(values + at), from, bytes, streaming);
  }

  void scale_blocks(const float* run, std::int64_t blocks, BlockScales& of, float* scaled) const {
    if (attributes.format == BlockFormat::nvfp4)
      return encodings().scale_nvfp4(run, blocks, *scale, narrow_of(DType::f8_e4m3, true), of, scaled);
    const std::uint32_t fraction = attributes.format == BlockFormat::mxfp4 ? 0x400000U : 0x600000U;  // of 1.5 and 1.75
    encodings().scale_mx(run, blocks, of_type, attributes.covers, fraction, of, scaled);
  }
};

}  // namespace

Plan plan_quantize(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"x"});
  expect_row_major(call, operand, {"x", "values"});
  QuantizeWork work;
  work.threads = context.threads;
  work.elements = operand["x"].shape.elements();
  const std::size_t bytes = static_cast<std::size_t>(work.parts()) * sizeof(std::uint32_t);
  if (call.kind == amax_kind) {
    return own_plan(call, work,
                    {{"x", to<&QuantizeWork::x>},
                     {"amax", to<&QuantizeWork::amax>},
                     {workspace_operand, to<&QuantizeWork::partial>}},
                    bytes);
  }
  const Quantize& attributes = call.attributes.as<Quantize>();
  work.to = narrow_of(attributes.to, attributes.saturate);
  work.streaming = worth_streaming(operand["values"].bytes());
  return own_plan(call, work,
                  {{"x", to<&QuantizeWork::x>},
                   {"scale", to<&QuantizeWork::scale>},
                   {"values", to<&QuantizeWork::values>},
                   {"inverse", to<&QuantizeWork::inverse>},
                   {"amax", to<&QuantizeWork::amax>},
                   {workspace_operand, to<&QuantizeWork::partial>}},
                  bytes);
}

Plan plan_scale_from_amax(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext&) {
  expect_row_major(call, tensors[0]);
  ScaleWork work;
  work.attributes = call.attributes.as<ScaleFromAmax>();
  work.count = tensors[0].shape.elements();
  return own_plan(call, work, {{"history", to<&ScaleWork::history>}, {"scale", to<&ScaleWork::scale>}});
}

Plan plan_quantize_blocks(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"x"});
  expect_row_major(call, operand, {"x", "values", "scales"});
  BlocksWork work;
  work.threads = context.threads;
  work.attributes = call.attributes.as<QuantizeBlocks>();
  work.elements = operand["x"].shape.elements();
  work.block = block_of(work.attributes.format);
  const DType type = element_of(work.attributes.format);
  work.to = narrow_of(type, true);
  work.of_type = static_cast<std::uint32_t>(std::ilogb(largest_finite(type)));
  work.streaming = worth_streaming(operand["values"].bytes());
  return own_plan(call, work,
                  {{"x", to<&BlocksWork::x>},
                   {"scale", to<&BlocksWork::scale>},
                   {"values", to<&BlocksWork::values>},
                   {"scales", to<&BlocksWork::scales>}});
}

}  // namespace gpubench::cpu
