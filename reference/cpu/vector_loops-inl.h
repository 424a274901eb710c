// Loops over runs of f32 in Highway: any length, any alignment.
//
// Include after foreach_target.h, outside the target namespace.
#if defined(GPUBENCH_VECTOR_LOOPS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef GPUBENCH_VECTOR_LOOPS_INL_H
#undef GPUBENCH_VECTOR_LOOPS_INL_H
#else
#define GPUBENCH_VECTOR_LOOPS_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "reference/cpu/block_io.h"
#include "reference/cpu/vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

using Halves = hn::Rebind<std::uint16_t, Floats>;
using Bytes = hn::Rebind<std::uint8_t, Floats>;
using Integers = hn::RebindToSigned<Floats>;

HWY_INLINE V load(const float* from) { return hn::LoadU(Floats(), from); }
HWY_INLINE V load(const bf16* from) {
  const auto bits = hn::LoadU(Halves(), reinterpret_cast<const std::uint16_t*>(from));
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(Words(), bits)));
}

/// Whole numbers up to 255.
HWY_INLINE V load(const std::uint8_t* from) {
  return hn::ConvertTo(Floats(), hn::PromoteTo(Integers(), hn::LoadU(Bytes(), from)));
}

HWY_INLINE void store(V x, float* to) { hn::StoreU(x, Floats(), to); }

/// narrow<bf16>() in the lower half of each lane.
HWY_INLINE hn::Vec<Words> rounded_words(V x) {
  const auto words = [](std::uint32_t bits) HWY_ATTR { return hn::Set(Words(), bits); };
  const auto bits = hn::BitCast(Words(), x), upper = hn::ShiftRight<16>(bits);
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(hn::And(upper, words(1)), words(0x7FFF))));
  const auto is_nan = hn::And(bits, words(0x7FFFFFFF)) > words(0x7F800000);
  return hn::IfThenElse(is_nan, hn::Or(upper, words(0x40)), rounded);
}
HWY_INLINE void store(V x, bf16* to) {
  const auto narrowed = hn::DemoteTo(Halves(), hn::BitCast(Integers(), rounded_words(x)));
  hn::StoreU(narrowed, Halves(), reinterpret_cast<std::uint16_t*>(to));
}
HWY_INLINE void store(hn::Vec<Words> x, std::uint8_t* to) {
  hn::StoreU(hn::DemoteTo(Bytes(), hn::BitCast(Integers(), x)), Bytes(), to);
}
HWY_INLINE void store(V x, std::uint8_t* to) { store(hn::BitCast(Words(), hn::ConvertTo(Integers(), x)), to); }

/// The first `count` lanes, at most all; the others are 0, or not stored.
template <class T>
HWY_INLINE V load_some(const T* from, std::int64_t count) {
  T some[lane_count] = {};
  std::copy_n(from, std::min(count, lane_count), some);  // the minimum avoids a compiler warning
  return load(some);
}
template <class Vector, class T>
HWY_INLINE void store_some(Vector x, std::int64_t count, T* to) {
  T some[lane_count];
  store(x, some);
  std::copy_n(some, std::min(count, lane_count), to);
}
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// Masked instructions do not access memory beyond `count`.
HWY_INLINE V load_some(const float* from, std::int64_t count) {
  return hn::MaskedLoad(hn::FirstN(Floats(), static_cast<std::size_t>(count)), Floats(), from);
}
HWY_INLINE void store_some(V x, std::int64_t count, float* to) {
  hn::BlendedStore(x, hn::FirstN(Floats(), static_cast<std::size_t>(count)), Floats(), to);
}
#endif

template <bool whole>
struct Lanes {
  std::int64_t count = lane_count;
  template <class T>
  HWY_INLINE V from(const T* at) const {
    if constexpr (whole) {
      return load(at);
    } else {
      return load_some(at, count);
    }
  }
  template <class Vector, class T>
  HWY_INLINE void to(Vector x, T* at) const {
    if constexpr (whole) {
      store(x, at);
    } else {
      store_some(x, count, at);
    }
  }
};

template <class Step>
HWY_INLINE void each_vector(std::int64_t count, const Step& step) {
  std::int64_t i = 0;
  for (; i + lane_count <= count; i += lane_count) step(Lanes<true>(), i);
  if (i < count) step(Lanes<false>{count - i}, i);
}

/// y[i] = op(x[i]...), i < count, on vectors. An x may be y.
template <class To, class Op, class... X>
HWY_INLINE void map(To* y, std::int64_t count, const Op& op, const X*... x) {
  each_vector(count, [&](auto lanes, std::int64_t i) HWY_ATTR { lanes.to(op(lanes.from(x + i)...), y + i); });
}

/// Floats up to the next cache line, where streaming can start.
HWY_INLINE std::int64_t floats_to_line(const float* y) {
  return static_cast<std::int64_t>((0U - reinterpret_cast<std::uintptr_t>(y)) % 64U / sizeof(float));
}

/// map() with streaming stores. `prefetches`: 4 KiB ahead; false if arithmetic fills the time in which the processor
/// would issue the next loads.
template <bool prefetches = true, class Op, class... X>
HWY_INLINE void map_streaming(float* y, std::int64_t count, const Op& op, const X*... x) {
  constexpr std::ptrdiff_t prefetch_bytes = 4096;
  std::int64_t i = std::min(count, floats_to_line(y));
  map(y, i, op, x...);
#pragma GCC unroll 2
  for (; i + lane_count <= count; i += lane_count) {
    if constexpr (prefetches) {
      (__builtin_prefetch(reinterpret_cast<const std::byte*>(x + i) + prefetch_bytes, 0, 2), ...);
    }
    hn::Stream(op(load(x + i)...), Floats(), y + i);
  }
  map(y + i, count - i, op, (x + i)...);
}

/// The sum of op(x[i]...), i < count, in four vectors, which hides the latency of additions. Prefetches half as many
/// floats at `ahead`, unless it is null.
template <class Op, class... X>
HWY_INLINE float sum_of(std::int64_t count, const float* ahead, const Op& op, const X*... x) {
  constexpr std::int64_t step = 4 * lane_count;
  V sums[4] = {all(0.0F), all(0.0F), all(0.0F), all(0.0F)};
  std::int64_t i = 0;
  for (; i + step <= count; i += step) {
    if (ahead != nullptr) {
      for (std::int64_t j = 0; j < step; j += 32) __builtin_prefetch(ahead + (i + j) / 2, 0, 3);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) sums[j] = hn::Add(op(load(x + i + j * lane_count)...), sums[j]);
  }
  for (; i < count; i += lane_count) {
    const std::int64_t rest = std::min(count - i, lane_count);
    const auto mask = hn::FirstN(Floats(), static_cast<std::size_t>(rest));
    sums[0] = hn::Add(hn::IfThenElseZero(mask, op(load_some(x + i, rest)...)), sums[0]);
  }
  const V total = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(Floats(), total));
}

/// May ignore NaN; -infinity if count is 0.
HWY_INLINE float largest_of(const float* x, std::int64_t count) {
  const V none = all(-std::numeric_limits<float>::infinity());
  V found[2] = {none, none};
  std::int64_t i = 0;
  for (; i + 2 * lane_count <= count; i += 2 * lane_count) {
    found[0] = hn::Max(load(x + i), found[0]);
    found[1] = hn::Max(load(x + i + lane_count), found[1]);
  }
  for (; i < count; i += lane_count) {
    const std::int64_t rest = std::min(count - i, lane_count);
    const auto mask = hn::FirstN(Floats(), static_cast<std::size_t>(rest));
    found[0] = hn::Max(hn::IfThenElse(mask, load_some(x + i, rest), none), found[0]);
  }
  return hn::GetLane(hn::MaxOfLanes(Floats(), hn::Max(found[0], found[1])));
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
