#include "reference/cpu/runs.h"

#include <algorithm>
#include <array>

#include "reference/cpu/block_io.h"
#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/convert.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// f16 by integer arithmetic: Highway 1.0 on SSE4 truncates instead of rounding and turns infinities into numbers.

using Words = hn::CappedTag<std::uint32_t, 16>;
using Halves = hn::Rebind<std::uint16_t, Words>;
using Floats = hn::Rebind<float, Words>;
constexpr std::int64_t lane_count = hn::MaxLanes(Words());

constexpr std::uint32_t exponents_between = 127 - 15;  // difference of the exponent biases of f32 and f16
constexpr int bits_between = 23 - 10;                  // difference of the fraction widths
constexpr std::uint32_t infinity = 0x7F800000U, half_infinity = 0x7C00U, half_nan = 0x7E00U;

HWY_INLINE hn::Vec<Words> words_of(std::uint32_t bits) { return hn::Set(Words(), bits); }

// Calls run(from, to) on whole vectors; the remaining elements go through a buffer.
template <class From, class To, class Run>
HWY_INLINE void in_vectors(const From* from, std::int64_t count, To* to, const Run& run) {
  std::int64_t i = 0;
  for (; i + lane_count <= count; i += lane_count) run(from + i, to + i);
  if (i == count) return;
  From given[lane_count] = {};
  To made[lane_count];
  std::copy_n(from + i, count - i, given);
  run(given, made);
  std::copy_n(made, count - i, to + i);
}

void WidenHalves(const std::uint16_t* from, std::int64_t count, float* to) {
  in_vectors(from, count, to, [](const std::uint16_t* source, float* target) HWY_ATTR {
    const auto half = hn::PromoteTo(Words(), hn::LoadU(Halves(), source));
    const auto size = hn::And(half, words_of(0x7FFF));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(half, size));
    const auto shifted = hn::ShiftLeft<bits_between>(size);
    const auto normal = hn::Add(shifted, words_of(exponents_between << 23U));
    // Sets the exponent of the smallest normal f16, then subtracts it: exact.
    const auto smallest = words_of((exponents_between + 1) << 23U);
    const auto subnormal = hn::BitCast(
        Words(), hn::Sub(hn::BitCast(Floats(), hn::Add(shifted, smallest)), hn::BitCast(Floats(), smallest)));
    const auto is_subnormal = size < words_of(0x0400), is_finite = size < words_of(half_infinity);
    const auto finite = hn::IfThenElse(is_subnormal, subnormal, normal);
    const auto widened = hn::IfThenElse(is_finite, finite, hn::Or(shifted, words_of(infinity)));
    hn::StoreU(hn::BitCast(Floats(), hn::Or(widened, sign)), Floats(), target);
  });
}

void NarrowToHalves(const float* from, std::int64_t count, std::uint16_t* to) {
  in_vectors(from, count, to, [](const float* source, std::uint16_t* target) HWY_ATTR {
    const hn::RebindToSigned<Words> integers;
    const auto bits = hn::BitCast(Words(), hn::LoadU(Floats(), source));
    const auto size = hn::And(bits, words_of(0x7FFFFFFF));
    const auto sign = hn::ShiftRight<16>(hn::Xor(bits, size));
    const auto rebiased = hn::Sub(size, words_of(exponents_between << 23U));
    const auto tie = hn::And(hn::ShiftRight<bits_between>(rebiased), words_of(1));
    const auto normal = hn::ShiftRight<bits_between>(hn::Add(rebiased, hn::Add(tie, words_of(0xFFF))));
    // Floats at 0.5 have the spacing of f16's subnormals, so the addition rounds to them.
    const auto half = hn::Set(Floats(), 0.5F);
    const auto subnormal =
        hn::Sub(hn::BitCast(Words(), hn::Add(hn::BitCast(Floats(), size), half)), hn::BitCast(Words(), half));
    const auto is_subnormal = size < words_of((exponents_between + 1) << 23U);
    const auto is_too_large = size > words_of(((127U + 16U) << 23U) - 1), is_nan = size > words_of(infinity);
    auto narrowed = hn::IfThenElse(is_subnormal, subnormal, normal);
    narrowed = hn::IfThenElse(is_too_large, words_of(half_infinity), narrowed);
    narrowed = hn::IfThenElse(is_nan, words_of(half_nan), narrowed);
    hn::StoreU(hn::DemoteTo(Halves(), hn::BitCast(integers, hn::Or(narrowed, sign))), Halves(), target);
  });
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(WidenHalves);
HWY_EXPORT(NarrowToHalves);

void widen_bytes(DType type, const std::byte* from, std::int64_t count, float* to) {
  static const std::array<float, 256> e4m3 = values_by_code(DType::f8_e4m3), e5m2 = values_by_code(DType::f8_e5m2);
  const std::array<float, 256>& values = type == DType::f8_e4m3 ? e4m3 : e5m2;
  for (std::int64_t i = 0; i < count; ++i) to[i] = values[std::to_integer<std::size_t>(from[i])];
}

}  // namespace

std::array<float, 256> values_by_code(DType type) {
  std::array<float, 256> values;
  for (std::size_t code = 0; code < values.size(); ++code) {
    const auto stored = static_cast<std::byte>(code);
    values[code] = static_cast<float>(load(type, &stored));
  }
  return values;
}

bool widens_to_f32(DType type) { return narrows_from_f32(type) || type == DType::f8_e4m3 || type == DType::f8_e5m2; }

bool narrows_from_f32(DType type) { return type == DType::f16 || type == DType::bf16; }

void widen_elements(DType type, const std::byte* from, std::int64_t count, float* to) {
  switch (type) {
    case DType::bf16: return runs().widen(reinterpret_cast<const bf16*>(from), count, to);
    case DType::f16: return HWY_DYNAMIC_DISPATCH(WidenHalves)(reinterpret_cast<const std::uint16_t*>(from), count, to);
    default: return widen_bytes(type, from, count, to);
  }
}

void narrow_elements(DType type, const float* from, std::int64_t count, std::byte* to) {
  if (type == DType::bf16) return narrow_run(from, count, reinterpret_cast<bf16*>(to));
  HWY_DYNAMIC_DISPATCH(NarrowToHalves)(from, count, reinterpret_cast<std::uint16_t*>(to));
}

void round_elements(DType type, std::int64_t count, float* values) {
  if (type == DType::f32) return;
  std::array<std::byte, block_elements * sizeof(std::uint16_t)> rounded;
  for (std::int64_t done = 0; done < count; done += block_elements) {
    const std::int64_t size = std::min(block_elements, count - done);
    narrow_elements(type, values + done, size, rounded.data());
    widen_elements(type, rounded.data(), size, values + done);
  }
}

}  // namespace gpubench::cpu
#endif
