#include "reference/cpu/pool_taps.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/pool_taps.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

/// Calls group(how many vectors, lanes, first channel) until all channels are done: four vectors at a time, so that a
/// tap is read in longer runs and four chains of results are under way.
template <class Group>
HWY_INLINE void over_groups(std::int64_t channels, const Group& group) {
  std::int64_t c = 0;
  for (; c + 4 * lane_count <= channels; c += 4 * lane_count) group(std::integral_constant<int, 4>(), Lanes<true>(), c);
  for (; c + lane_count <= channels; c += lane_count) group(std::integral_constant<int, 1>(), Lanes<true>(), c);
  if (c < channels) group(std::integral_constant<int, 1>(), Lanes<false>{channels - c}, c);
}

template <class T>
void keep_larger(const T* x, const Taps& taps, std::int64_t channels, float* y, std::uint8_t* index) {
  over_groups(channels, [&](auto vectors, auto lanes, std::int64_t c) HWY_ATTR {
    V best[vectors], chosen[vectors];
    for (int k = 0; k < vectors; ++k) {
      // Where nothing is larger than the first of them, it is that: all are -infinity.
      best[k] = all(-std::numeric_limits<float>::infinity());
      chosen[k] = all(static_cast<float>(taps.number[0]));
    }
    for (std::size_t t = 0; t < taps.count; ++t) {
      const V number = all(static_cast<float>(taps.number[t]));
      for (int k = 0; k < vectors; ++k) {
        const V value = lanes.from(x + taps.place[t] + c + k * lane_count);
        const auto larger = hn::Or(value > best[k], hn::IsNaN(value));
        best[k] = hn::IfThenElse(larger, value, best[k]);
        chosen[k] = hn::IfThenElse(larger, number, chosen[k]);
      }
    }
    for (int k = 0; k < vectors; ++k) {
      lanes.to(best[k], y + c + k * lane_count);
      lanes.to(chosen[k], index + c + k * lane_count);
    }
  });
}

/// Adds term(tap, first element) of each tap.
template <class Term>
HWY_INLINE void add_terms(const Taps& taps, std::int64_t channels, float* y, const Term& term) {
  over_groups(channels, [&](auto vectors, auto lanes, std::int64_t c) HWY_ATTR {
    V sum[vectors];
    for (int k = 0; k < vectors; ++k) sum[k] = taps.first_turn ? all(0.0F) : lanes.from(y + c + k * lane_count);
    for (std::size_t t = 0; t < taps.count; ++t) {
      for (int k = 0; k < vectors; ++k) sum[k] = term(t, lanes, taps.place[t] + c + k * lane_count, sum[k]);
    }
    for (int k = 0; k < vectors; ++k) lanes.to(sum[k], y + c + k * lane_count);
  });
}

template <class T>
void add_chosen(const T* dy, const Taps& taps, std::int64_t channels, float* dx, const std::uint8_t* index) {
  add_terms(taps, channels, dx, [&](std::size_t t, auto lanes, std::int64_t at, V sum) HWY_ATTR {
    const auto chosen = lanes.from(index + at) == all(static_cast<float>(taps.number[t]));
    return hn::Add(sum, hn::IfThenElseZero(chosen, lanes.from(dy + at)));
  });
}

template <class T>
void add_scaled(const T* x, const Taps& taps, std::int64_t channels, float* y) {
  add_terms(taps, channels, y, [&](std::size_t t, auto lanes, std::int64_t at, V sum) HWY_ATTR {
    return hn::MulAdd(lanes.from(x + at), all(taps.factor[t]), sum);
  });
}

TapKernels<float> TapKernelsF32() { return {keep_larger<float>, add_chosen<float>, add_scaled<float>}; }
TapKernels<bf16> TapKernelsBf16() { return {keep_larger<bf16>, add_chosen<bf16>, add_scaled<bf16>}; }

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {

HWY_EXPORT(TapKernelsF32);
HWY_EXPORT(TapKernelsBf16);

template <>
TapKernels<float> tap_kernels() {
  return HWY_DYNAMIC_DISPATCH(TapKernelsF32)();
}
template <>
TapKernels<bf16> tap_kernels() {
  return HWY_DYNAMIC_DISPATCH(TapKernelsBf16)();
}

}  // namespace gpubench::cpu
#endif
