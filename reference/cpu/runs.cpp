#include "reference/cpu/runs.h"

#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/runs.cpp"
#include <hwy/foreach_target.h>

#include "reference/cpu/vector_loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

void widen(const bf16* x, std::int64_t count, float* y) {
  map(
      y, count, [](V of) HWY_ATTR { return of; }, x);
}

void narrow(const float* x, std::int64_t count, bf16* y) {
  map(
      y, count, [](V of) HWY_ATTR { return of; }, x);
}

void stream(const float* x, std::int64_t count, float* y) {
  const std::int64_t whole = count / lane_count * lane_count;
  for (std::int64_t i = 0; i < whole; i += lane_count) hn::Stream(load(x + i), Floats(), y + i);
  map(
      y + whole, count - whole, [](V of) HWY_ATTR { return of; }, x + whole);
}

void add(const float* x, std::int64_t count, float* y) {
  map(
      y, count, [](V left, V right) HWY_ATTR { return hn::Add(left, right); }, y, x);
}

void add_two(const float* a, const float* b, std::int64_t count, float* y) {
  map(
      y, count, [](V sum, V left, V right) HWY_ATTR { return hn::Add(hn::Add(sum, left), right); }, y, a, b);
}

void add_four(const float* a, const float* b, const float* c, const float* d, std::int64_t count, float* y) {
  const auto sum = [](V first, V second, V third, V fourth, V of)
                       HWY_ATTR { return hn::Add(of, hn::Add(hn::Add(first, second), hn::Add(third, fourth))); };
  map(y, count, sum, a, b, c, d, y);
}

void add_scaled(const float* x, float factor, std::int64_t count, float* y) {
  map(
      y, count, [=](V of, V sum) HWY_ATTR { return hn::MulAdd(of, all(factor), sum); }, x, y);
}

void add_constant(float constant, std::int64_t count, float* y) {
  map(
      y, count, [=](V of) HWY_ATTR { return hn::Add(of, all(constant)); }, y);
}

void multiply(const float* x, std::int64_t count, float* y) {
  map(
      y, count, [](V left, V right) HWY_ATTR { return hn::Mul(left, right); }, y, x);
}

void scale(const float* x, float factor, std::int64_t count, float* y) {
  map(
      y, count, [=](V of) HWY_ATTR { return hn::Mul(of, all(factor)); }, x);
}

void divide(float divisor, std::int64_t count, float* y) {
  map(
      y, count, [=](V of) HWY_ATTR { return hn::Div(of, all(divisor)); }, y);
}

void blend(const float* a, float of_a, const float* b, float of_b, std::int64_t count, float* y) {
  const auto sum = [=](V left, V right) HWY_ATTR { return hn::MulAdd(left, all(of_a), hn::Mul(right, all(of_b))); };
  map(y, count, sum, a, b);
}

void keep_larger(const float* x, std::int64_t count, float* y) {
  const auto larger = [](V of, V kept) HWY_ATTR { return hn::IfThenElse(hn::Or(of > kept, hn::IsNaN(of)), of, kept); };
  map(y, count, larger, x, y);
}

bool unscale(const float* x, float factor, std::int64_t count, float* y) {
  V bad = all(0.0F);  // 0 times infinity or NaN is NaN
  map(
      y, count,
      [&](V of) HWY_ATTR {
        bad = hn::Add(bad, hn::Mul(of, all(0.0F)));
        return hn::Mul(of, all(factor));
      },
      x);
  return !hn::AllTrue(Floats(), bad == all(0.0F));
}

float sum(const float* x, std::int64_t count, const float* ahead) {
  return sum_of(
      count, ahead, [](V of) HWY_ATTR { return of; }, x);
}

float add_rows(const float* a, const float* b, std::int64_t count, float* y, float* streamed, const float* ahead_a,
               const float* ahead_b) {
  V sums[4] = {all(0.0F), all(0.0F), all(0.0F), all(0.0F)};
  const auto few = [&](std::int64_t begin, std::int64_t end) HWY_ATTR {
    each_vector(end - begin, [&](auto lanes, std::int64_t i) HWY_ATTR {
      const V both = hn::Add(lanes.from(a + begin + i), lanes.from(b + begin + i));
      lanes.to(both, y + begin + i);
      if (streamed != nullptr) lanes.to(both, streamed + begin + i);
      sums[0] = hn::Add(sums[0], both);  // both are 0 beyond the end
    });
  };
  constexpr std::int64_t step = 4 * lane_count;
  const std::int64_t head = streamed == nullptr ? 0 : std::min(count, floats_to_line(streamed));
  const std::int64_t end = head + (count - head) / step * step;
  few(0, head);
  for (std::int64_t i = head; i < end; i += step) {
    for (std::int64_t j = 0; j < step; j += 16) __builtin_prefetch(ahead_a + i + j, 0, 3);
    for (std::int64_t j = 0; j < step; j += 32) __builtin_prefetch(ahead_b + (i + j) / 2, 0, 3);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const std::int64_t at = i + j * lane_count;
      const V both = hn::Add(load(a + at), load(b + at));
      store(both, y + at);
      if (streamed != nullptr) hn::Stream(both, Floats(), streamed + at);
      sums[j] = hn::Add(sums[j], both);
    }
  }
  few(end, count);
  const V total = hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]));
  return hn::GetLane(hn::SumOfLanes(Floats(), total));
}

float squared_deviations(const float* x, float mean, std::int64_t count, const float* ahead) {
  const auto square = [=](V of) HWY_ATTR {
    const V deviation = hn::Sub(of, all(mean));
    return hn::Mul(deviation, deviation);
  };
  return sum_of(count, ahead, square, x);
}

float dot(const float* a, const float* b, std::int64_t count) {
  return sum_of(
      count, nullptr, [](V left, V right) HWY_ATTR { return hn::Mul(left, right); }, a, b);
}

float exp_sum(const float* x, float largest, std::int64_t count, float* y) {
  if (y == nullptr)
    return sum_of(
        count, nullptr, [=](V of) HWY_ATTR { return exp(hn::Sub(of, all(largest))); }, x);
  V sums[2] = {all(0.0F), all(0.0F)};
  const auto step = [&](V of, V& sum) HWY_ATTR {
    const V e = exp(hn::Sub(of, all(largest)));
    sum = hn::Add(sum, e);
    return e;
  };
  std::int64_t i = 0;
  for (; i + 2 * lane_count <= count; i += 2 * lane_count) {
    store(step(load(x + i), sums[0]), y + i);
    store(step(load(x + i + lane_count), sums[1]), y + i + lane_count);
  }
  for (; i < count; i += lane_count) {
    const std::int64_t rest = std::min(count - i, lane_count);
    const auto mask = hn::FirstN(Floats(), static_cast<std::size_t>(rest));
    const V e = hn::IfThenElseZero(mask, exp(hn::Sub(load_some(x + i, rest), all(largest))));
    store_some(e, rest, y + i);
    sums[0] = hn::Add(sums[0], e);
  }
  return hn::GetLane(hn::SumOfLanes(Floats(), hn::Add(sums[0], sums[1])));
}

void softmax(const float* x, float shift, float factor, std::int64_t count, float* y) {
  map(
      y, count, [=](V of) HWY_ATTR { return hn::Mul(exp(hn::Sub(of, all(shift))), all(factor)); }, x);
}

void softmax_backward(const float* y, const float* dy, float projection, std::int64_t count, float* dx) {
  map(
      dx, count, [=](V of, V d) HWY_ATTR { return hn::Mul(of, hn::Sub(d, all(projection))); }, y, dy);
}

void sigmoid(const float* x, std::int64_t count, float* y) {
  map(
      y, count, [](V of) HWY_ATTR { return Logistic(of).value; }, x);
}

void normalize(const float* x, const float* gamma, const float* beta, float mean, float rstd, std::int64_t count,
               float* y, bool streaming) {
  const auto normalized = [=](V of, V factor, V shift) HWY_ATTR {
    return hn::MulAdd(factor, hn::Mul(hn::Sub(of, all(mean)), all(rstd)), shift);
  };
  if (!streaming) return map(y, count, normalized, x, gamma, beta);
  map_streaming<false>(y, count, normalized, x, gamma, beta);
}

void add_rows_bf16(const bf16* x, const bf16* r, std::int64_t count, bf16* sum, float* wide) {
  map(
      sum, count, [](V left, V right) HWY_ATTR { return hn::Add(left, right); }, x, r);
  widen(sum, count, wide);
}

NormTerms norm_sums(const float* dy, const float* x, const float* gamma, float mean, float rstd, std::int64_t count,
                    float* dgamma, float* dbeta) {
  V h_sum = all(0.0F), h_xhat_sum = all(0.0F);
  each_vector(count, [&](auto lanes, std::int64_t i) HWY_ATTR {  // dy and h are 0 beyond the end
    const V d = lanes.from(dy + i), h = hn::Mul(d, lanes.from(gamma + i));
    const V xhat = hn::Mul(hn::Sub(lanes.from(x + i), all(mean)), all(rstd));
    h_sum = hn::Add(h_sum, h);
    h_xhat_sum = hn::MulAdd(h, xhat, h_xhat_sum);
    lanes.to(hn::MulAdd(d, xhat, lanes.from(dgamma + i)), dgamma + i);
    lanes.to(hn::Add(lanes.from(dbeta + i), d), dbeta + i);
  });
  return {hn::GetLane(hn::SumOfLanes(Floats(), h_sum)), hn::GetLane(hn::SumOfLanes(Floats(), h_xhat_sum))};
}

void norm_dx(const float* dy, const float* x, const float* gamma, float mean, float rstd, NormTerms means,
             std::int64_t count, float* dx) {
  const auto gradient = [=](V d, V of, V factor) HWY_ATTR {
    const V xhat = hn::Mul(hn::Sub(of, all(mean)), all(rstd)), h = hn::Mul(d, factor);
    return hn::Mul(all(rstd), hn::NegMulAdd(xhat, all(means.h_xhat), hn::Sub(h, all(means.h))));
  };
  map(dx, count, gradient, dy, x, gamma);
}

const Runs* RunsTable() {
  static constexpr Runs table{
      .widen = widen,
      .narrow = narrow,
      .stream = stream,
      .add = add,
      .add_two = add_two,
      .add_four = add_four,
      .add_scaled = add_scaled,
      .add_constant = add_constant,
      .multiply = multiply,
      .scale = scale,
      .divide = divide,
      .blend = blend,
      .keep_larger = keep_larger,
      .unscale = unscale,
      .sum = sum,
      .squared_deviations = squared_deviations,
      .dot = dot,
      .largest = largest_of,
      .exp = exp_sum,
      .softmax = softmax,
      .softmax_backward = softmax_backward,
      .sigmoid = sigmoid,
      .normalize = normalize,
      .add_rows = add_rows,
      .add_rows_bf16 = add_rows_bf16,
      .norm_sums = norm_sums,
      .norm_dx = norm_dx,
  };
  return &table;
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {

HWY_EXPORT(RunsTable);
const Runs& runs() { return *HWY_DYNAMIC_DISPATCH(RunsTable)(); }

}  // namespace gpubench::cpu
#endif
