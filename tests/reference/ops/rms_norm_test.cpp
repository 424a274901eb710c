#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "reference/ops/norm.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace rms_norm_test {

struct Example {
  Program program;
  ValueId dy, x, gamma, rstd;
  RmsNormForward forward;
  RmsNormBackward backward;

  Example(DType type, DType parameters, std::int64_t rows, std::int64_t n, double epsilon = 1e-5) {
    const Math math = type == DType::f64 ? f64_math : f32_math;
    dy = source(program, "dy", type, {rows, n});
    x = source(program, "x", type, {rows, n});
    gamma = source(program, "gamma", parameters, {n}, Role::parameter);
    rstd = source(program, "rstd", type == DType::f64 ? DType::f64 : DType::f32, {rows});
    forward = rms_norm_forward(program, {{epsilon}}, math, "rms", x, gamma);
    backward = rms_norm_backward(program, {{epsilon}}, math, "back", dy, x, gamma, rstd);
  }
};

// x = (1, 7): mean of squares 25, epsilon 11 gives rstd = 1/6.
TEST(RmsNorm, ARowWorkedOutByHand) {
  Example s(DType::f64, DType::f64, 1, 2, 11.0);
  TextbookRun run(s.program);
  run.set(s.x, {1, 7});
  run.set(s.gamma, {3, 12});
  expect_near(values_of(run.judge(0, 0)), {0.5, 14}, 1e-14);
  EXPECT_DOUBLE_EQ(run.judge(0, 1)[0].value, 1.0 / 6.0);
}

// (1, 7) / 5 are 0.2 and 1.4 in fp64, 205 2^-10 and 179 2^-7 in bf16.
TEST(RmsNorm, BeforeGammaTheRowIsRoundedWhereItIsAskedTo) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {1, 2});
  const ValueId gamma = source(program, "gamma", DType::f32, {2}, Role::parameter);
  (void)rms_norm_forward(program, {{.epsilon = 0.0}, true}, f32_math, "rms", x, gamma);
  TextbookRun run(program);
  run.set(x, {1, 7});
  run.set(gamma, {1, 1});
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{205 * 0x1p-10, 179 * 0x1p-7}));
}

// A saved rstd of 1/3: xhat = (1/3, 7/3), in bf16 171 2^-9 and 149 2^-6. dy gamma = (1 + 2^-7)^2 rounds to 1 + 2^-6.
TEST(RmsNorm, InTheGradientTheProductWithGammaAndXhatAreRounded) {
  Program program;
  const ValueId dy = source(program, "dy", DType::bf16, {1, 2}), x = source(program, "x", DType::bf16, {1, 2});
  const ValueId gamma = source(program, "gamma", DType::f32, {2}, Role::parameter);
  const ValueId rstd = source(program, "rstd", DType::f32, {1});
  (void)rms_norm_backward(program, {{}, true}, f32_math, "back", dy, x, gamma, rstd);
  TextbookRun run(program);
  run.set(dy, {1 + 0x1p-7, 0});
  run.set(x, {1, 7});
  run.set(gamma, {1 + 0x1p-7, 1});
  run.set(rstd, {1.0 / 3.0});
  const double third = static_cast<float>(1.0 / 3.0), h = 1 + 0x1p-6, projection = h * third / 2;
  expect_near(values_of(run.judge(0, 0)), {third * (h - third * projection), third * (-7 * third * projection)}, 1e-15);
  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{(1 + 0x1p-7) * 171 * 0x1p-9, 0}));
}

// An infinity has an infinite mean of squares in any arithmetic: rstd and its finite products are 0.
TEST(RmsNorm, ARowWithAnInfinityIsZeroAroundIt) {
  Example s(DType::f64, DType::f64, 1, 2);
  TextbookRun run(s.program);
  run.set(s.x, {std::numeric_limits<double>::infinity(), 7});
  run.set(s.gamma, {3, 12});
  EXPECT_TRUE(std::isnan(run.judge(0, 0)[0].value));
  EXPECT_TRUE(within(run.judge(0, 0)[1], DType::f64, 0.0));
  EXPECT_FALSE(within(run.judge(0, 0)[1], DType::f64, 0.5));
  EXPECT_TRUE(within(run.judge(0, 1)[0], DType::f64, 0.0));
}

// A saved rstd of 1/2: xhat = (1/2, 7/2), h = (3, 12); sum(h xhat) = 43.5, so dx = (h - xhat 43.5 / 2) / 2.
TEST(RmsNorm, GradientsOfARowWorkedOutByHandTakeTheSavedStatistic) {
  Example s(DType::f64, DType::f64, 1, 2);
  TextbookRun run(s.program);
  run.set(s.x, {1, 7});
  run.set(s.gamma, {3, 12});
  run.set(s.dy, {1, 1});
  run.set(s.rstd, {0.5});
  EXPECT_EQ(values_of(run.judge(1, 0)), (std::vector<double>{(3 - 10.875) / 2, (12 - 76.125) / 2}));
  EXPECT_EQ(values_of(run.judge(1, 1)), (std::vector<double>{0.5, 3.5}));
}

TEST(RmsNorm, GradientsAgreeWithCentralDifferences) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {3, 7});
  const ValueId gamma = source(p, "gamma", DType::f64, {7});
  const RmsNormForward out = rms_norm_forward(p, {}, f64_math, "rms", x, gamma);
  expect_derivative_agrees(p, out.y, {{x, spread(21, 1)}, {gamma, spread(7, 2)}}, {x, gamma});
}

struct Fault {
  bool centered = false;
  bool epsilon_outside = false;
  bool no_projection = false;
};

std::array<int, 4> rejected(DType type, const Fault& fault) {
  constexpr std::int64_t rows = 24, n = 768;
  Example s(type, DType::f32, rows, n);
  TextbookRun run(s.program);
  std::vector<double> data = spread(rows * n, 5);
  for (std::int64_t i = 0; i < rows * n; ++i)
    data[i] = (data[i] + static_cast<double>(i / n % 2)) * std::exp2(-(i / n) % 12);
  run.set(s.x, data);
  run.set(s.gamma, spread(n, 6));
  run.set(s.dy, spread(rows * n, 7));
  const std::vector<double> x = run.get(s.x), gamma = run.get(s.gamma), dy = run.get(s.dy);
  std::vector<float> y(x.size()), dx(x.size()), rstd(rows), dgamma(n, 0.0F);
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto at = [&](const std::vector<double>& of, std::int64_t j) { return static_cast<float>(of[row * n + j]); };
    float mean = 0.0F, squares = 0.0F, weighted = 0.0F;
    for (std::int64_t j = 0; fault.centered && j < n; ++j) mean += at(x, j) / n;
    for (std::int64_t j = 0; j < n; ++j) squares += (at(x, j) - mean) * (at(x, j) - mean);
    rstd[row] = fault.epsilon_outside ? 1.0F / (std::sqrt(squares / n) + 1e-5F) : 1.0F / std::sqrt(squares / n + 1e-5F);
    for (std::int64_t j = 0; j < n; ++j) {
      const float xhat = (at(x, j) - mean) * rstd[row];
      const auto g = static_cast<float>(gamma[j]);
      y[row * n + j] = xhat * g;
      weighted += at(dy, j) * g * (at(x, j) * rstd[row]);
      dgamma[j] += at(dy, j) * (at(x, j) * rstd[row]);
    }
    if (fault.no_projection) weighted = 0.0F;
    for (std::int64_t j = 0; j < n; ++j) {
      const float h = at(dy, j) * static_cast<float>(gamma[j]);
      dx[row * n + j] = rstd[row] * (h - at(x, j) * rstd[row] * weighted / n);
    }
  }
  run.set(s.rstd, std::vector<double>(rstd.begin(), rstd.end()));
  const auto count = [&](const std::vector<Expected>& judged, const std::vector<float>& got, DType stored) {
    int bad = 0;
    for (std::size_t i = 0; i < got.size(); ++i) bad += within(judged[i], stored, round_to(stored, got[i])) ? 0 : 1;
    return bad;
  };
  return {count(run.judge(0, 0), y, type), count(run.judge(0, 1), rstd, DType::f32), count(run.judge(1, 0), dx, type),
          count(run.judge(1, 1), dgamma, DType::f32)};
}

TEST(RmsNorm, CorrectSinglePrecisionIsAccepted) {
  for (const DType type : {DType::f32, DType::bf16})
    EXPECT_EQ(rejected(type, {}), (std::array{0, 0, 0, 0})) << name(type);
}

TEST(RmsNorm, LayerNormalizationInItsPlaceIsRejected) {
  const auto wrong = rejected(DType::bf16, {.centered = true});
  EXPECT_GT(wrong[0], 24 * 768 / 2);
  EXPECT_GE(wrong[1], 12);  // every other row has a mean of 1
}

TEST(RmsNorm, EpsilonOutsideTheRootIsRejectedInSmallRows) {
  EXPECT_GE(rejected(DType::f32, {.epsilon_outside = true})[1], 20);
}

TEST(RmsNorm, AGradientWithoutItsProjectionIsRejected) {
  EXPECT_GT(rejected(DType::f32, {.no_projection = true})[2], 24 * 768 * 9 / 10);
}

TEST(RmsNorm, SubsetsAgreeWithTheWhole) {
  Example s(DType::f32, DType::f32, 13, 5);
  TextbookRun run(s.program);
  run.set(s.x, spread(65, 5));
  run.set(s.gamma, spread(5, 6));
  run.set(s.dy, spread(65, 7));
  run.set(s.rstd, std::vector<double>(13, 1.5));
  for (const int op : {0, 1}) {
    for (const int output : {0, 1}) expect_subsets_agree(run, op, output);
  }
}

TEST(RmsNorm, CostCountsDataOnce) {
  const Example s(DType::bf16, DType::f32, 100, 64);
  const Cost forward = cost_of(s.program, s.program.op(0));
  EXPECT_EQ(forward.flop, 5.0 * 6400);
  EXPECT_EQ(forward.bytes, 2.0 * 6400 * 2 + 64 * 4 + 100 * 4);  // x, y; gamma; rstd
  const Cost backward = cost_of(s.program, s.program.op(1));
  EXPECT_EQ(backward.flop, 11.0 * 6400);
  EXPECT_EQ(backward.bytes, 3.0 * 6400 * 2 + 2 * 64 * 4 + 100 * 4);
}

TEST(RmsNorm, AGradientIntoTheStatisticIsAnError) {
  Example s(DType::f64, DType::f64, 3, 7);
  const std::string message = refused_gradient(s.program, s.forward.rstd);
  EXPECT_NE(message.find("statistic of op 'rms'"), std::string::npos) << message;
}

}  // namespace rms_norm_test
}  // namespace gpubench::testing
