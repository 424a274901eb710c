#include "reference/cpu/batch_norm_passes.h"

#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/batch_norm_passes.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

HWY_INLINE V square(V x) { return hn::Mul(x, x); }

template <class T>
void add_four_rows(const T* x, std::int64_t channels, MergeWeights weights, float* mean, float* m2) {
  each_vector(channels, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V a = lanes.from(x + i), b = lanes.from(x + i + channels);
    const V c = lanes.from(x + i + 2 * channels), d = lanes.from(x + i + 3 * channels);
    const V of_group = hn::Mul(hn::Add(hn::Add(a, b), hn::Add(c, d)), all(0.25F));
    const V left = hn::MulAdd(hn::Sub(a, of_group), hn::Sub(a, of_group), square(hn::Sub(b, of_group)));
    const V right = hn::MulAdd(hn::Sub(c, of_group), hn::Sub(c, of_group), square(hn::Sub(d, of_group)));
    const V before = lanes.from(mean + i), delta = hn::Sub(of_group, before);
    lanes.to(hn::MulAdd(delta, all(weights.mean), before), mean + i);
    const V added = hn::MulAdd(square(delta), all(weights.m2), hn::Add(left, right));
    lanes.to(hn::Add(lanes.from(m2 + i), added), m2 + i);
  });
}

template <class T>
void add_row(const T* x, std::int64_t channels, MergeWeights weights, float* mean, float* m2) {
  each_vector(channels, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V before = lanes.from(mean + i), delta = hn::Sub(lanes.from(x + i), before);
    lanes.to(hn::MulAdd(delta, all(weights.mean), before), mean + i);
    lanes.to(hn::MulAdd(square(delta), all(weights.m2), lanes.from(m2 + i)), m2 + i);
  });
}

void merge(const float* of_group, const float* m2_of_group, MergeWeights weights, std::int64_t count, float* mean,
           float* m2) {
  each_vector(count, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V before = lanes.from(mean + i), delta = hn::Sub(lanes.from(of_group + i), before);
    lanes.to(hn::MulAdd(delta, all(weights.mean), before), mean + i);
    const V added = hn::MulAdd(square(delta), all(weights.m2), lanes.from(m2_of_group + i));
    lanes.to(hn::Add(lanes.from(m2 + i), added), m2 + i);
  });
}

template <class T>
void normalize(const T* x, const float* mean, const float* scale, const float* beta, const T* r, bool relu,
               std::int64_t count, T* y) {
  const auto normalized = [](V of, V m, V factor, V shift)
                              HWY_ATTR { return hn::MulAdd(hn::Sub(of, m), factor, shift); };
  const auto cut = [](V of) HWY_ATTR { return hn::IfThenZeroElse(of < all(0.0F), of); };  // a NaN spreads
  if (!relu) return map(y, count, normalized, x, mean, scale, beta);
  if (r == nullptr) {
    const auto selected = [=](V of, V m, V factor, V shift) HWY_ATTR { return cut(normalized(of, m, factor, shift)); };
    return map(y, count, selected, x, mean, scale, beta);
  }
  const auto added = [=](V of, V m, V factor, V shift, V residual)
                         HWY_ATTR { return cut(hn::Add(normalized(of, m, factor, shift), residual)); };
  map(y, count, added, x, mean, scale, beta, r);
}

template <Slope of, class T, class L>
HWY_INLINE V slope_at(const L& lanes, const SlopeRow<T>& row, std::int64_t i) {
  V slope = lanes.from(row.dy + i);
  if constexpr (of == Slope::summed) slope = hn::Add(slope, lanes.from(row.dy2 + i));
  if constexpr (of != Slope::given) slope = hn::IfThenZeroElse(lanes.from(row.y + i) <= all(0.0F), slope);
  if constexpr (of == Slope::stored || of == Slope::summed) lanes.to(slope, row.dr + i);
  return slope;
}

template <Slope of, class T>
HWY_INLINE void add_slopes_of(const SlopeRow<T> row, const SlopeRow<T>* next, const float* mean, std::int64_t count,
                              float* plain, float* weighted) {
  if (next == nullptr) {
    each_vector(count, [=](auto lanes, std::int64_t i) HWY_ATTR {
      const V slope = slope_at<of>(lanes, row, i), deviation = hn::Sub(lanes.from(row.x + i), lanes.from(mean + i));
      lanes.to(hn::Add(lanes.from(plain + i), slope), plain + i);
      lanes.to(hn::MulAdd(slope, deviation, lanes.from(weighted + i)), weighted + i);
    });
    return;
  }
  each_vector(count, [=, second = *next](auto lanes, std::int64_t i) HWY_ATTR {
    const V a = slope_at<of>(lanes, row, i), b = slope_at<of>(lanes, second, i), m = lanes.from(mean + i);
    lanes.to(hn::Add(lanes.from(plain + i), hn::Add(a, b)), plain + i);
    const V product = hn::Mul(b, hn::Sub(lanes.from(second.x + i), m));
    const V products = hn::MulAdd(a, hn::Sub(lanes.from(row.x + i), m), product);
    lanes.to(hn::Add(lanes.from(weighted + i), products), weighted + i);
  });
}

template <class T>
void add_slopes(Slope slope, const SlopeRow<T>& row, const SlopeRow<T>* next, const float* mean, std::int64_t count,
                float* plain, float* weighted) {
  switch (slope) {
    case Slope::given: return add_slopes_of<Slope::given>(row, next, mean, count, plain, weighted);
    case Slope::selected: return add_slopes_of<Slope::selected>(row, next, mean, count, plain, weighted);
    case Slope::stored: return add_slopes_of<Slope::stored>(row, next, mean, count, plain, weighted);
    case Slope::summed: return add_slopes_of<Slope::summed>(row, next, mean, count, plain, weighted);
  }
}

template <class T>
void project(const T* slopes, const T* y, const T* x, const float* mean, const float* factor, const float* plain,
             const float* weighted, std::int64_t count, T* dx) {
  const auto projected = [](V slope, V of, V m, V scale, V p, V w)
                             HWY_ATTR { return hn::Mul(scale, hn::NegMulAdd(hn::Sub(of, m), w, hn::Sub(slope, p))); };
  if (y == nullptr) return map(dx, count, projected, slopes, x, mean, factor, plain, weighted);
  const auto selected = [=](V slope, V selecting, V of, V m, V scale, V p, V w) HWY_ATTR {
    return projected(hn::IfThenZeroElse(selecting <= all(0.0F), slope), of, m, scale, p, w);
  };
  map(dx, count, selected, slopes, y, x, mean, factor, plain, weighted);
}

template <class T>
constexpr BatchNormPasses<T> passes{add_four_rows<T>, add_row<T>, merge, normalize<T>, add_slopes<T>, project<T>};

BatchNormPasses<float> PassesF32() { return passes<float>; }
BatchNormPasses<bf16> PassesBf16() { return passes<bf16>; }

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {

HWY_EXPORT(PassesF32);
HWY_EXPORT(PassesBf16);

template <>
BatchNormPasses<float> batch_norm_passes() {
  return HWY_DYNAMIC_DISPATCH(PassesF32)();
}
template <>
BatchNormPasses<bf16> batch_norm_passes() {
  return HWY_DYNAMIC_DISPATCH(PassesBf16)();
}

}  // namespace gpubench::cpu
#endif
