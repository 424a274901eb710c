// Scaled copies in 8 and 4 bits. A thread works on runs of f32 that stay in the first-level cache; numbers are encoded
// by integer arithmetic on their bits, without branches.
#include "reference/ops/quantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"

namespace gpubench::cpu {
namespace {

constexpr std::uint32_t magnitude_mask = 0x7fffffffU;
constexpr std::uint32_t infinity_bits = 0x7f800000U;

/// A narrow type, by what encoding a number takes.
struct Narrow {
  std::uint32_t cut;           ///< bits of an f32's fraction that go
  std::uint32_t rebias;        ///< what its exponent is above that of the type, at its place
  std::uint32_t least_normal;  ///< bits of the f32
  float subnormal_units;       ///< 1 / the smallest number
  std::uint32_t last;          ///< what is larger becomes this: the largest number, infinity or NaN
  std::uint32_t nan, sign;
};

Narrow narrow_of(DType to, bool saturate) {
  switch (to) {
    case DType::f8_e4m3: return {20, 120U << 3U, 121U << 23U, 0x1p9F, saturate ? 0x7eU : 0x7fU, 0x7f, 0x80};
    case DType::f8_e5m2: return {21, 112U << 2U, 113U << 23U, 0x1p16F, saturate ? 0x7bU : 0x7cU, 0x7f, 0x80};
    default: return {22, 126U << 1U, 127U << 23U, 0x1p1F, 7, 7, 8};  // NaN is the largest number, +6
  }
}

/// To nearest, ties to even. Below the normal numbers, adding 2^23 rounds to a whole number of smallest ones.
[[gnu::always_inline]] inline std::uint32_t encoded(float x, const Narrow& to) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & magnitude_mask;
  const std::uint32_t half = (1U << (to.cut - 1U)) - 1U;
  const std::uint32_t normal = ((magnitude + half + ((magnitude >> to.cut) & 1U)) >> to.cut) - to.rebias;
  const float shifted = std::bit_cast<float>(magnitude) * to.subnormal_units + 0x1p23F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) & 0xffU;
  const std::uint32_t number = std::min(magnitude < to.least_normal ? subnormal : normal, to.last);
  const std::uint32_t sign = (bits >> 31U) * to.sign;
  const std::uint32_t nan = to.sign == 8U ? to.nan : to.nan | sign;
  return magnitude > infinity_bits ? nan : number | sign;
}

GPUBENCH_VECTOR_CLONES
void encode_run(const float* x, float factor, std::int64_t count, Narrow to, std::uint8_t* codes) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) codes[i] = static_cast<std::uint8_t>(encoded(x[i] * factor, to));
}

/// Bits of the largest magnitude: integers in the order of their numbers, NaN above infinity.
GPUBENCH_VECTOR_CLONES
std::uint32_t largest_of_run(const float* x, std::int64_t count) {
  std::uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & magnitude_mask);
  }
  return largest;
}

/// Two codes of four bits to a byte, the first in its low half.
GPUBENCH_VECTOR_CLONES
void pack_halves(const std::uint8_t* codes, std::int64_t count, std::uint8_t* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count / 2; ++i)
    to[i] = static_cast<std::uint8_t>(codes[2 * i] | (codes[2 * i + 1] << 4U));
}

// Formats of blocks: a run of whole blocks goes through loops over the elements for their largest, over the blocks for
// their scales, and over the elements again for their codes.

constexpr std::int64_t most_blocks = block_elements / 16;

/// x[i] becomes the code of x[i] * factor / divisor, of mx of x[i] * factor. Loops over blocks go through all of them,
/// one vector, however many there are.
struct BlockScales {
  alignas(64) std::array<std::uint32_t, most_blocks> largest{};  ///< bits of the magnitude
  alignas(64) std::array<float, most_blocks> factor, divisor;
  alignas(64) std::array<std::uint8_t, most_blocks> codes;
};

template <std::int64_t block>
[[gnu::always_inline]] inline void largest_of_each(const float* x, std::int64_t blocks, std::uint32_t* largest) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    std::uint32_t most = 0;
#pragma omp simd reduction(max : most)
    for (std::int64_t i = 0; i < block; ++i)
      most = std::max(most, std::bit_cast<std::uint32_t>(x[b * block + i]) & magnitude_mask);
    largest[b] = most;
  }
}

/// The elements on the scales of their blocks: a loop of its own, because a vector of codes is longer than a block.
template <std::int64_t block, bool divides>
[[gnu::always_inline]] inline void scale_each(const float* x, const BlockScales& scales, std::int64_t blocks,
                                              float* scaled) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    const float factor = scales.factor[static_cast<std::size_t>(b)];
    const float divisor = scales.divisor[static_cast<std::size_t>(b)];
#pragma omp simd
    for (std::int64_t i = b * block; i < (b + 1) * block; ++i)
      scaled[i] = divides ? x[i] * factor / divisor : x[i] * factor;
  }
}

/// `above`: what the largest number of the type has for an exponent; `covers`: one more where the fraction of the
/// largest magnitude is above `fraction`, that of the type's largest number. Below 0 there is no exponent.
GPUBENCH_VECTOR_CLONES
void scale_mx(const float* x, std::int64_t blocks, std::uint32_t above, bool covers, std::uint32_t fraction,
              BlockScales& scales, float* scaled) {
  largest_of_each<32>(x, blocks, scales.largest.data());
#pragma omp simd
  for (std::size_t b = 0; b < most_blocks; ++b) {
    const std::uint32_t largest = scales.largest[b];
    const std::uint32_t wanted = (largest >> 23U) + (covers && (largest & 0x7fffffU) > fraction ? 1U : 0U);
    const std::uint32_t exponent = std::max(wanted, above) - above;
    // 2^(127 - exponent), whose last one is subnormal.
    const std::uint32_t power = exponent < 254U ? (254U - exponent) << 23U : 0x400000U;
    scales.factor[b] = std::bit_cast<float>(power);
    scales.codes[b] = static_cast<std::uint8_t>(largest < infinity_bits ? exponent : 0xffU);
  }
  scale_each<32, false>(x, scales, blocks, scaled);
}

/// `e4m3`: saturating.
GPUBENCH_VECTOR_CLONES
void scale_nvfp4(const float* x, std::int64_t blocks, float scale, Narrow e4m3, BlockScales& scales, float* scaled) {
  largest_of_each<16>(x, blocks, scales.largest.data());
#pragma omp simd
  for (std::size_t b = 0; b < most_blocks; ++b) {
    const std::uint32_t largest = scales.largest[b];
    const std::uint32_t code = encoded(std::bit_cast<float>(largest) * scale / 6.0F, e4m3);
    const float subnormal = static_cast<float>(static_cast<std::int32_t>(code & 7U)) * 0x1p-9F;
    const float normal = std::bit_cast<float>(((code & 0x7fU) << 20U) + (120U << 23U));
    const float magnitude = (code & 0x78U) == 0 ? subnormal : normal;
    const float divisor = (code & 0x80U) == 0 ? magnitude : -magnitude;  // of a scale below 0
    const bool none = magnitude == 0.0F;                                 // zeros of x's sign
    scales.factor[b] = none ? 0.0F : scale;
    scales.divisor[b] = none ? 1.0F : divisor;
    scales.codes[b] = static_cast<std::uint8_t>(largest < infinity_bits ? code : 0x7fU);
  }
  scale_each<16, true>(x, scales, blocks, scaled);
}

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
      largest = std::max(largest, largest_of_run(run, count));
      if (values == nullptr) continue;
      encode_run(run, *scale, count, to, codes.data());
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
    const float largest = std::bit_cast<float>(largest_of_run(history, count));
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
    encode_run(scaled.values.data(), 1.0F, count, to, codes.data());
    for (std::int64_t b = 0; b < blocks; ++b) {
      if (of.largest[static_cast<std::size_t>(b)] >= infinity_bits)
        std::fill_n(codes.begin() + b * block, block, static_cast<std::uint8_t>(to.nan));
    }
    std::copy_n(of.codes.begin(), blocks, scales + first / block);
    const bool packed = to.sign == 8U;
    if (packed) pack_halves(codes.data(), count, halves.data());
    const std::int64_t at = packed ? first / 2 : first, bytes = packed ? count / 2 : count;
    const auto* from = reinterpret_cast<const std::byte*>(packed ? halves.data() : codes.data());
    move_bytes(reinterpret_cast<std::byte*>(values + at), from, bytes, streaming);
  }

  void scale_blocks(const float* run, std::int64_t blocks, BlockScales& of, float* scaled) const {
    if (attributes.format == BlockFormat::nvfp4)
      return scale_nvfp4(run, blocks, *scale, narrow_of(DType::f8_e4m3, true), of, scaled);
    const std::uint32_t fraction = attributes.format == BlockFormat::mxfp4 ? 0x400000U : 0x600000U;  // of 1.5 and 1.75
    scale_mx(run, blocks, of_type, attributes.covers, fraction, of, scaled);
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
