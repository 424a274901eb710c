#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/ops/pointwise.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace activation_test {

TEST(Relu, KeepsWhatIsPositiveAndANan) {
  Program p;
  const ValueId x = source(p, "x", DType::bf16, {5});
  const ValueId dy = source(p, "dy", DType::bf16, {5});
  const ValueId y = relu_forward(p, f32_math, "relu", x);
  (void)relu_backward(p, f32_math, "back", y, dy);
  TextbookRun run(p);
  run.set(x, {-2.5, -0.0, 0.0, 1.75, std::numeric_limits<double>::quiet_NaN()});
  run.set(dy, {1, 2, 3, 4, 5});
  run.run(0);
  const std::vector<Expected> forward = run.judge(0, 0);
  EXPECT_EQ(forward[0].value, 0.0);
  EXPECT_EQ(forward[3].value, 1.75);
  EXPECT_TRUE(std::isnan(forward[4].value));
  EXPECT_EQ(values_of(run.judge(1, 0)), (std::vector<double>{0, 0, 0, 4, 5}));  // as in PyTorch
  for (const Expected& judged : forward) EXPECT_EQ(judged.bound, 0.0);
}

TEST(SquaredRelu, SquaresWhatIsPositiveAndKeepsANan) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {5});
  const ValueId dy = source(p, "dy", DType::f32, {5});
  (void)squared_relu_forward(p, f32_math, "y", x);
  (void)squared_relu_backward(p, f32_math, "back", x, dy);
  TextbookRun run(p);
  run.set(x, {-2.5, -0.0, 0.5, 1.75, std::numeric_limits<double>::quiet_NaN()});
  run.set(dy, {1, 2, 3, -4, 5});
  std::vector<double> y = values_of(run.judge(0, 0)), dx = values_of(run.judge(1, 0));
  EXPECT_TRUE(std::isnan(y.back()));
  EXPECT_TRUE(std::isnan(dx.back()));
  y.pop_back();
  dx.pop_back();
  EXPECT_EQ(y, (std::vector<double>{0, 0, 0.25, 3.0625}));
  EXPECT_EQ(dx, (std::vector<double>{0, 0, 3, -14}));
}

// Faults: slope x, a square rounded to bf16 on the way, a missing rectifier.
TEST(SquaredRelu, TheBoundsAcceptF32AndRejectTypicalFaults) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4001});
  const ValueId dy = source(p, "dy", DType::f32, {4001});
  (void)squared_relu_forward(p, f32_math, "y", x);
  (void)squared_relu_backward(p, f32_math, "back", x, dy);
  std::vector<double> xs, dys;
  for (int i = -2000; i <= 2000; ++i) {
    xs.push_back(static_cast<float>(i) * 0.0037F);
    dys.push_back(0.3F - static_cast<float>(i) * 0.0007F);
  }
  TextbookRun run(p);
  run.set(x, xs);
  run.set(dy, dys);
  const std::vector<Expected> y = run.judge(0, 0), dx = run.judge(1, 0);
  int unrounded = 0, narrow = 0, open = 0, slope = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const auto at = static_cast<float>(xs[i]), gradient = static_cast<float>(dys[i]);
    const float positive = std::max(at, 0.0F);
    unrounded += within(y[i], DType::f32, positive * positive) ? 0 : 1;
    unrounded += within(dx[i], DType::f32, 2.0F * positive * gradient) ? 0 : 1;
    narrow += within(y[i], DType::f32, round_to(DType::bf16, double{positive} * positive)) ? 0 : 1;
    open += within(y[i], DType::f32, at * at) ? 0 : 1;
    slope += within(dx[i], DType::f32, positive * gradient) ? 0 : 1;
  }
  EXPECT_EQ(unrounded, 0);
  EXPECT_GT(narrow, 1900);
  EXPECT_EQ(open, 2000);
  EXPECT_GT(slope, 1990);
}

TEST(Activations, GradientsAgreeWithDifferences) {
  const std::vector<double> x_values{-6.0, -1.5, -0.1, 0.2, 0.7, 4.0};  // none at the kink
  for (const auto forward : {relu_forward, silu_forward, squared_relu_forward}) {
    Program p;
    const ValueId x = source(p, "x", DType::f64, {6});
    expect_derivative_agrees(p, forward(p, f64_math, "y", x), {{x, x_values}}, {x});
  }
}

// s(ln 3) = 3/4: silu(ln 3) = 3/4 ln 3, its slope 3/4 (1 + ln 3 / 4).
TEST(Silu, HasItsKnownValues) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {3});
  const ValueId dy = source(p, "dy", DType::f64, {3});
  (void)silu_forward(p, f64_math, "silu", x);
  (void)silu_backward(p, f64_math, "back", x, dy);
  TextbookRun run(p);
  const double ln3 = std::log(3.0);
  run.set(x, {0.0, ln3, -ln3});
  run.set(dy, {1.0, 2.0, 4.0});
  const std::vector<double> y = values_of(run.judge(0, 0));
  EXPECT_EQ(y[0], 0.0);
  EXPECT_DOUBLE_EQ(y[1], 0.75 * ln3);
  EXPECT_DOUBLE_EQ(y[2], -0.25 * ln3);
  const std::vector<double> dx = values_of(run.judge(1, 0));
  EXPECT_EQ(dx[0], 0.5);
  EXPECT_DOUBLE_EQ(dx[1], 1.5 * (1.0 + 0.25 * ln3));
  EXPECT_DOUBLE_EQ(dx[2], 1.0 - 0.75 * ln3);
}

/// Rejected elements of y and dx, of 6,001, if `logistic` computes in f32.
template <class Logistic>
std::array<int, 2> rejected(Logistic logistic) {
  std::vector<double> xs, dys;
  for (int i = -3000; i <= 3000; ++i) {
    xs.push_back(static_cast<float>(i) * 0.0037F);
    dys.push_back(0.3F - static_cast<float>(i) * 0.0007F);
  }
  const auto n = static_cast<std::int64_t>(xs.size());
  Program p;
  const ValueId x = source(p, "x", DType::f32, {n});
  const ValueId dy = source(p, "dy", DType::f32, {n});
  (void)silu_forward(p, f32_math, "silu", x);
  (void)silu_backward(p, f32_math, "back", x, dy);
  TextbookRun run(p);
  run.set(x, xs);
  run.set(dy, dys);
  const std::vector<Expected> y = run.judge(0, 0), dx = run.judge(1, 0);
  std::array<int, 2> count{};
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const auto at = static_cast<float>(xs[i]);
    const float s = logistic(at);
    count[0] += within(y[i], DType::f32, at * s) ? 0 : 1;
    count[1] += within(dx[i], DType::f32, static_cast<float>(dys[i]) * (s * (1.0F + at * (1.0F - s)))) ? 0 : 1;
  }
  return count;
}

TEST(Silu, TheBoundsAcceptF32AndRejectA16BitLogistic) {
  EXPECT_EQ(rejected([](float x) { return 1.0F / (1.0F + std::exp(-x)); }), (std::array{0, 0}));
  EXPECT_EQ(rejected([](float x) { return 1.0F / (1.0F + std::exp2(-1.44269504F * x)); }), (std::array{0, 0}));
  const auto narrow =
      rejected([](float x) { return static_cast<float>(round_to(DType::bf16, 1.0 / (1.0 + std::exp(-double{x})))); });
  for (const int count : narrow) EXPECT_GT(count, 6001 * 6 / 10);
}

}  // namespace activation_test
}  // namespace gpubench::testing
