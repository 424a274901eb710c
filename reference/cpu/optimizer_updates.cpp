#include "reference/cpu/runs.h"

#include <algorithm>

#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/optimizer_updates.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

void UpdateAdamW(const float* g, const AdamWFactors& f, std::int64_t count, float* w, float* m, float* v) {
  each_vector(count, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V weight = lanes.from(w + i);
    const V gradient = hn::MulAdd(all(f.clip), lanes.from(g + i), hn::Mul(all(f.l2), weight));
    const V first = hn::MulAdd(all(f.beta1), lanes.from(m + i), hn::Mul(all(f.one_minus_beta1), gradient));
    const V square = hn::Mul(gradient, gradient);
    const V second = hn::MulAdd(all(f.beta2), lanes.from(v + i), hn::Mul(all(f.one_minus_beta2), square));
    const V deviation = hn::Add(hn::Sqrt(hn::Mul(second, all(f.inverse_bc2))), all(f.epsilon));
    const V direction = hn::Div(hn::Mul(first, all(f.inverse_bc1)), deviation);
    lanes.to(first, m + i);
    lanes.to(second, v + i);
    lanes.to(hn::NegMulAdd(all(f.lr), hn::MulAdd(all(f.weight_decay), weight, direction), weight), w + i);
  });
}

void UpdateLion(const float* g, const LionFactors& f, std::int64_t count, float* w, float* m, float* /*v*/) {
  each_vector(count, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V weight = lanes.from(w + i), gradient = lanes.from(g + i), moment = lanes.from(m + i);
    const V c = hn::MulAdd(all(f.beta1), moment, hn::Mul(all(f.one_minus_beta1), gradient));
    const V sign = hn::IfThenElse(c > all(0.0F), all(1.0F), hn::IfThenElse(c < all(0.0F), all(-1.0F), c));
    lanes.to(hn::MulAdd(all(f.beta2), moment, hn::Mul(all(f.one_minus_beta2), gradient)), m + i);
    lanes.to(hn::NegMulAdd(all(f.lr), hn::MulAdd(all(f.weight_decay), weight, sign), weight), w + i);
  });
}

void UpdateSgd(const float* g, const SgdFactors& f, std::int64_t count, float* w, float* m, float* /*v*/) {
  each_vector(count, [=](auto lanes, std::int64_t i) HWY_ATTR {
    const V weight = lanes.from(w + i), d = hn::MulAdd(all(f.weight_decay), weight, lanes.from(g + i));
    const V moment = hn::MulAdd(all(f.momentum), lanes.from(m + i), d);
    lanes.to(moment, m + i);
    lanes.to(hn::NegMulAdd(all(f.lr), hn::MulAdd(all(f.of_d), d, hn::Mul(all(f.of_m), moment)), weight), w + i);
  });
}

// In four vectors, which hides the latency of additions.
double SumOfSquares(const float* g, std::int64_t count) {
  const hn::Repartition<double, Floats> doubles;
  const hn::Half<Floats> floats;
  constexpr std::int64_t width = hn::MaxLanes(hn::Repartition<double, Floats>());
  const auto zero = hn::Zero(doubles);
  hn::Vec<decltype(doubles)> sums[4] = {zero, zero, zero, zero};
  const auto add = [&](int k, const float* from) HWY_ATTR {
    const auto wide = hn::PromoteTo(doubles, hn::LoadU(floats, from));
    sums[k] = hn::MulAdd(wide, wide, sums[k]);
  };
  std::int64_t i = 0;
  for (; i + 4 * width <= count; i += 4 * width) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) add(k, g + i + k * width);
  }
  for (; i < count; i += width) {
    float some[width] = {};
    std::copy_n(g + i, std::min(width, count - i), some);
    add(0, some);
  }
  return hn::GetLane(hn::SumOfLanes(doubles, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {

HWY_EXPORT(UpdateAdamW);
HWY_EXPORT(UpdateLion);
HWY_EXPORT(UpdateSgd);
HWY_EXPORT(SumOfSquares);

void update_run(const float* g, const AdamWFactors& factors, std::int64_t count, float* w, float* m, float* v) {
  HWY_DYNAMIC_DISPATCH(UpdateAdamW)(g, factors, count, w, m, v);
}
void update_run(const float* g, const LionFactors& factors, std::int64_t count, float* w, float* m, float* v) {
  HWY_DYNAMIC_DISPATCH(UpdateLion)(g, factors, count, w, m, v);
}
void update_run(const float* g, const SgdFactors& factors, std::int64_t count, float* w, float* m, float* v) {
  HWY_DYNAMIC_DISPATCH(UpdateSgd)(g, factors, count, w, m, v);
}
double sum_of_squares(const float* g, std::int64_t count) { return HWY_DYNAMIC_DISPATCH(SumOfSquares)(g, count); }

}  // namespace gpubench::cpu
#endif
