#include "reference/cpu/encodings.h"

#include <algorithm>

#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/encodings.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

HWY_INLINE hn::Vec<Words> words(std::uint32_t bits) { return hn::Set(Words(), bits); }
HWY_INLINE hn::Vec<Words> magnitude_of(V x) { return hn::And(hn::BitCast(Words(), x), words(0x7fffffffU)); }

// To nearest, ties to even. Below the normal numbers, adding 2^23 rounds to a whole number of smallest ones.
HWY_INLINE hn::Vec<Words> encoded(V x, const Narrow& to) {
  const int cut = static_cast<int>(to.cut);
  const auto bits = hn::BitCast(Words(), x), magnitude = magnitude_of(x);
  const auto tie = hn::And(hn::ShiftRightSame(magnitude, cut), words(1));
  const auto half = hn::Add(tie, words((1U << (to.cut - 1U)) - 1U));
  const auto normal = hn::Sub(hn::ShiftRightSame(hn::Add(magnitude, half), cut), words(to.rebias));
  const V shifted = hn::MulAdd(hn::BitCast(Floats(), magnitude), all(to.subnormal_units), all(0x1p23F));
  const auto subnormal = hn::And(hn::BitCast(Words(), shifted), words(0xffU));
  const auto number = hn::IfThenElse(magnitude < words(to.least_normal), subnormal, normal);
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

// The compiler makes vectors of this loop.
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

// The elements on the scales of their blocks.
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
    // 2^(127 - exponent), whose last one is subnormal.
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
    const auto sign = hn::ShiftLeft<24>(hn::And(code, words(0x80U)));  // of a scale below 0
    const V divisor = hn::BitCast(Floats(), hn::Xor(hn::BitCast(Words(), magnitude), sign));
    const auto none = magnitude == all(0.0F);  // zeros of x's sign
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

HWY_EXPORT(EncodingsTable);
const Encodings& encodings() { return *HWY_DYNAMIC_DISPATCH(EncodingsTable)(); }

Narrow narrow_of(DType to, bool saturate) {
  switch (to) {
    case DType::f8_e4m3: return {20, 120U << 3U, 121U << 23U, 0x1p9F, saturate ? 0x7eU : 0x7fU, 0x7f, 0x80};
    case DType::f8_e5m2: return {21, 112U << 2U, 113U << 23U, 0x1p16F, saturate ? 0x7bU : 0x7cU, 0x7f, 0x80};
    default: return {22, 126U << 1U, 127U << 23U, 0x1p1F, 7, 7, 8};  // NaN is the largest number, +6
  }
}

}  // namespace gpubench::cpu
#endif
