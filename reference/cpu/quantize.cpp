// Scaled copies in 8 and 4 bits. A thread encodes runs of f32 in the L1 cache by integer arithmetic, without branches.
#include "reference/ops/quantize.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

#include "reference/cpu/block_io.h"
#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"
#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/quantize.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

#ifndef GPUBENCH_ENCODINGS
#define GPUBENCH_ENCODINGS
namespace gpubench::cpu {

/// f32's infinity; NaN has larger bits.
inline constexpr std::uint32_t infinity_bits = 0x7f800000U;

/// Encoding parameters of a narrow type.
struct Narrow {
  std::uint32_t cut;         ///< dropped fraction bits of an f32
  std::uint32_t rebias;      ///< difference of the exponent biases, shifted into place
  std::uint32_t min_normal;  ///< as bits of an f32
  float subnormal_units;     ///< 1 / the smallest number
  std::uint32_t last;        ///< code of larger values: the largest number, infinity or NaN
  std::uint32_t nan, sign;
};

// Block formats: a run of whole blocks takes three loops: largest magnitudes, scales per block, codes.

constexpr std::int64_t max_blocks = block_elements / 16;

/// The code of x[i] is that of x[i] * factor / divisor; for mx of x[i] * factor. Loops over blocks always cover a whole
/// vector of blocks.
struct BlockScales {
  alignas(64) std::array<std::uint32_t, max_blocks> largest{};  ///< bits of the magnitude
  alignas(64) std::array<float, max_blocks> factor, divisor;
  alignas(64) std::array<std::uint8_t, max_blocks> codes;
};

struct Encodings {
  /// codes[i] = code of x[i] factor.
  void (*encode)(const float* x, float factor, std::int64_t count, const Narrow& to, std::uint8_t* codes);
  /// Bits of the largest magnitude: ordered as the numbers, NaN above infinity.
  std::uint32_t (*largest)(const float* x, std::int64_t count);
  /// Packs two 4-bit codes per byte, the first in the low half.
  void (*pack_halves)(const std::uint8_t* codes, std::int64_t count, std::uint8_t* to);
  /// `above`: exponent of the type's largest number. `covers`: one more if the largest magnitude's fraction exceeds
  /// `fraction`, that of the type's largest number. Exponents are clamped at 0.
  void (*scale_mx)(const float* x, std::int64_t blocks, std::uint32_t above, bool covers, std::uint32_t fraction,
                   BlockScales& scales, float* scaled);
  /// `e4m3`: saturating.
  void (*scale_nvfp4)(const float* x, std::int64_t blocks, float scale, const Narrow& e4m3, BlockScales& scales,
                      float* scaled);
};

}  // namespace gpubench::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

HWY_INLINE hn::Vec<Words> words(std::uint32_t bits) { return hn::Set(Words(), bits); }
HWY_INLINE hn::Vec<Words> magnitude_of(V x) { return hn::And(hn::BitCast(Words(), x), words(0x7fffffffU)); }

// To nearest even. Below the normal numbers, adding 2^23 rounds to a multiple of the smallest number.
HWY_INLINE hn::Vec<Words> encoded(V x, const Narrow& to) {
  const int cut = static_cast<int>(to.cut);
  const auto bits = hn::BitCast(Words(), x), magnitude = magnitude_of(x);
  const auto tie = hn::And(hn::ShiftRightSame(magnitude, cut), words(1));
  const auto half = hn::Add(tie, words((1U << (to.cut - 1U)) - 1U));
  const auto normal = hn::Sub(hn::ShiftRightSame(hn::Add(magnitude, half), cut), words(to.rebias));
  const V shifted = hn::MulAdd(hn::BitCast(Floats(), magnitude), all(to.subnormal_units), all(0x1p23F));
  const auto subnormal = hn::And(hn::BitCast(Words(), shifted), words(0xffU));
  const auto number = hn::IfThenElse(magnitude < words(to.min_normal), subnormal, normal);
  const auto sign = hn::And(hn::ShiftRightSame(bits, to.sign == 8U ? 28 : 24), words(to.sign));
  const auto nan = to.sign == 8U ? words(to.nan) : hn::Or(words(to.nan), sign);
  return hn::IfThenElse(magnitude > words(infinity_bits), nan, hn::Or(hn::Min(number, words(to.last)), sign));
}

void encode(const float* x, float factor, std::int64_t count, const Narrow& into, std::uint8_t* codes) {
  each_vector(count, [=, to = into](auto lanes, std::int64_t i)
                         HWY_ATTR { lanes.to(encoded(hn::Mul(lanes.from(x + i), all(factor)), to), codes + i); });
}

HWY_INLINE std::uint32_t largest_lane(hn::Vec<Words> x) { return hn::GetLane(hn::MaxOfLanes(Words(), x)); }

std::uint32_t largest_magnitude(const float* x, std::int64_t count) {
  auto largest = words(0);
  each_vector(
      count, [&](auto lanes, std::int64_t i) HWY_ATTR { largest = hn::Max(largest, magnitude_of(lanes.from(x + i))); });
  return largest_lane(largest);
}

// The compiler vectorizes this loop.
void pack_halves(const std::uint8_t* codes, std::int64_t count, std::uint8_t* to) {
  for (std::int64_t i = 0; i < count / 2; ++i)
    to[i] = static_cast<std::uint8_t>(codes[2 * i] | (codes[2 * i + 1] << 4U));
}

template <std::int64_t block>
HWY_INLINE void largest_of_each(const float* x, std::int64_t blocks, std::uint32_t* largest) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    auto most = words(0);
    for (std::int64_t i = 0; i < block; i += lane_count) most = hn::Max(most, magnitude_of(load(x + b * block + i)));
    largest[b] = largest_lane(most);
  }
}

template <std::int64_t block, bool divides>
HWY_INLINE void scale_each(const float* x, const BlockScales& scales, std::int64_t blocks, float* scaled) {
  for (std::int64_t b = 0; b < blocks; ++b) {
    const V factor = all(scales.factor[static_cast<std::size_t>(b)]);
    const V divisor = all(scales.divisor[static_cast<std::size_t>(b)]);
    for (std::int64_t i = b * block; i < (b + 1) * block; i += lane_count) {
      const V product = hn::Mul(load(x + i), factor);
      store(divides ? hn::Div(product, divisor) : product, scaled + i);
    }
  }
}

void scale_mx(const float* x, std::int64_t blocks, std::uint32_t above, bool covers, std::uint32_t fraction,
              BlockScales& scales, float* scaled) {
  largest_of_each<32>(x, blocks, scales.largest.data());
  for (std::size_t b = 0; b < scales.largest.size(); b += static_cast<std::size_t>(lane_count)) {
    const auto largest = hn::LoadU(Words(), &scales.largest[b]);
    const auto is_covered = hn::And(largest, words(0x7fffffU)) > words(covers ? fraction : 0x7fffffU);
    const auto wanted = hn::Add(hn::ShiftRight<23>(largest), hn::IfThenElseZero(is_covered, words(1)));
    const auto exponent = hn::Sub(hn::Max(wanted, words(above)), words(above));
    // 2^(127 - exponent); the last one is subnormal.
    const auto power = hn::ShiftLeft<23>(hn::Sub(words(254), hn::Min(exponent, words(254))));
    const auto bits = hn::IfThenElse(exponent < words(254), power, words(0x400000U));
    hn::StoreU(hn::BitCast(Floats(), bits), Floats(), &scales.factor[b]);
    store(hn::IfThenElse(largest < words(infinity_bits), exponent, words(0xffU)), &scales.codes[b]);
  }
  scale_each<32, false>(x, scales, blocks, scaled);
}

void scale_nvfp4(const float* x, std::int64_t blocks, float scale, const Narrow& e4m3, BlockScales& scales,
                 float* scaled) {
  largest_of_each<16>(x, blocks, scales.largest.data());
  for (std::size_t b = 0; b < scales.largest.size(); b += static_cast<std::size_t>(lane_count)) {
    const auto largest = hn::LoadU(Words(), &scales.largest[b]);
    const auto code = encoded(hn::Div(hn::Mul(hn::BitCast(Floats(), largest), all(scale)), all(6.0F)), e4m3);
    const auto fraction = hn::BitCast(Integers(), hn::And(code, words(7)));
    const V subnormal = hn::Mul(hn::ConvertTo(Floats(), fraction), all(0x1p-9F));
    const auto normal = hn::Add(hn::ShiftLeft<20>(hn::And(code, words(0x7fU))), words(120U << 23U));
    const auto is_subnormal = hn::And(code, words(0x78U)) == words(0);
    const V magnitude =
        hn::IfThenElse(hn::RebindMask(Floats(), is_subnormal), subnormal, hn::BitCast(Floats(), normal));
    const auto sign = hn::ShiftLeft<24>(hn::And(code, words(0x80U)));  // for scales below 0
    const V divisor = hn::BitCast(Floats(), hn::Xor(hn::BitCast(Words(), magnitude), sign));
    const auto none = magnitude == all(0.0F);  // zeros keep x's sign
    store(hn::IfThenElse(none, all(0.0F), all(scale)), &scales.factor[b]);
    store(hn::IfThenElse(none, all(1.0F), divisor), &scales.divisor[b]);
    store(hn::IfThenElse(largest < words(infinity_bits), code, words(0x7fU)), &scales.codes[b]);
  }
  scale_each<16, true>(x, scales, blocks, scaled);
}

const Encodings* EncodingsTable() {
  static constexpr Encodings table{encode, largest_magnitude, pack_halves, scale_mx, scale_nvfp4};
  return &table;
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(EncodingsTable);
const Encodings& encodings() { return *HWY_DYNAMIC_DISPATCH(EncodingsTable)(); }

Narrow narrow_of(DType to, bool saturate) {
  switch (to) {
    case DType::f8_e4m3: return {20, 120U << 3U, 121U << 23U, 0x1p9F, saturate ? 0x7eU : 0x7fU, 0x7f, 0x80};
    case DType::f8_e5m2: return {21, 112U << 2U, 113U << 23U, 0x1p16F, saturate ? 0x7bU : 0x7cU, 0x7f, 0x80};
    default: return {22, 126U << 1U, 127U << 23U, 0x1p1F, 7, 7, 8};  // NaN becomes the largest number, +6
  }
}

/// Largest magnitude of x, and 8-bit values if requested.
struct QuantizeWork {
  int threads = 1;
  std::int64_t elements = 0;
  Narrow to{};
  Source x;
  const float* scale = nullptr;
  Target values;
  float* inverse = nullptr;
  float* amax = nullptr;
  std::uint32_t* partial = nullptr;  ///< [parts]

  [[nodiscard]] int parts() const { return chunk_count(threads, elements, element_grain); }

  void operator()() const {
    parallel_parts(threads, elements, element_grain,
                   [this](std::int64_t part, const Chunk& chunk) { partial[part] = run_part(chunk); });
    *amax = std::bit_cast<float>(*std::max_element(partial, partial + parts()));
    if (inverse != nullptr) *inverse = 1.0F / *scale;
  }

  [[nodiscard]] std::uint32_t run_part(const Chunk& chunk) const {
    BlockBuffer buffer;
    alignas(64) std::array<std::uint8_t, block_elements> codes;
    std::uint32_t largest = 0;
    in_blocks(chunk.end - chunk.begin, block_elements, [&](std::int64_t i, std::int64_t count) {
      const std::int64_t first = chunk.begin + i;
      const float* run = x.read(first, count, buffer);
      largest = std::max(largest, encodings().largest(run, count));
      if (values.data == nullptr) return;
      encodings().encode(run, *scale, count, to, codes.data());
      values.store(first, codes.data(), count);
    });
    stream_fence();
    return largest;
  }
};

struct ScaleWork {
  ScaleFromAmax attributes;
  std::int64_t count = 0;
  const float* history = nullptr;
  float* scale = nullptr;

  // By exponents; one less if the largest significand is above 1.75, that of the types' largest numbers.
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
  Source x;
  const float* scale = nullptr;  ///< the tensor's, for nvfp4
  Target values;
  std::uint8_t* scales = nullptr;

  void operator()() const {
    parallel_chunks(threads, elements, element_grain, [this](std::int64_t begin, std::int64_t end) {
      in_blocks(end - begin, block_elements, [&](std::int64_t i, std::int64_t count) { run_blocks(begin + i, count); });
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
    packed ? values.store(first / 2, halves.data(), count / 2) : values.store(first, codes.data(), count);
  }

  void scale_blocks(const float* run, std::int64_t blocks, BlockScales& of, float* scaled) const {
    if (attributes.format == BlockFormat::nvfp4)
      return encodings().scale_nvfp4(run, blocks, *scale, narrow_of(DType::f8_e4m3, true), of, scaled);
    const std::uint32_t fraction = attributes.format == BlockFormat::mxfp4 ? 0x400000U : 0x600000U;  // of 1.5 and 1.75
    encodings().scale_mx(run, blocks, of_type, attributes.covers, fraction, of, scaled);
  }
};

// quantize, amax and quantize_blocks; row-major.
Plan plan_quantize(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context) {
  const Named<TensorSpec> operand(call, tensors);
  expect_f32_or_bf16(call, operand, {"x"});
  expect_row_major(call, operand, {"x", "values"});
  QuantizeWork work;
  work.threads = context.threads;
  work.elements = operand["x"].shape.elements();
  if (call.kind == quantize_kind) {
    const Quantize& attributes = call.attributes.as<Quantize>();
    work.to = narrow_of(attributes.to, attributes.saturate);
  }
  return own_plan(call, work,
                  {{"x", to<&QuantizeWork::x>},
                   {"scale?", to<&QuantizeWork::scale>},
                   {"values?", to<&QuantizeWork::values>},
                   {"inverse?", to<&QuantizeWork::inverse>},
                   {"amax", to<&QuantizeWork::amax>},
                   {workspace_operand, to<&QuantizeWork::partial>}},
                  static_cast<std::size_t>(work.parts()) * sizeof(std::uint32_t));
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
  return own_plan(call, work,
                  {{"x", to<&BlocksWork::x>},
                   {"scale", to<&BlocksWork::scale>},
                   {"values", to<&BlocksWork::values>},
                   {"scales", to<&BlocksWork::scales>}});
}

}  // namespace

Ops quantize_ops() {
  return {{amax_kind, plan_quantize},
          {quantize_kind, plan_quantize},
          {quantize_blocks_kind, plan_quantize_blocks},
          {scale_from_amax_kind, plan_scale_from_amax}};
}

}  // namespace gpubench::cpu
#endif
