#include "reference/ops/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace softmax_test {

TEST(Softmax, ARowWorkedOutByHand) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {1, 3});
  (void)softmax_forward(p, f64_math, "y", x);
  TextbookRun run(p);
  run.set(x, {std::log(1.0), std::log(2.0), std::log(5.0)});
  expect_near(values_of(run.judge(0, 0)), {0.125, 0.25, 0.625}, 1e-15);
}

TEST(Softmax, LargeAndInfinitelySmallLogitsAreNoProblem) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {1, 3});
  (void)softmax_forward(p, f32_math, "y", x);
  TextbookRun run(p);
  run.set(x, {1e4, 1e4, -std::numeric_limits<double>::infinity()});
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{0.5, 0.5, 0}));
}

// sum y dy = 1/8 + 4/8 + 15/8 = 5/2
TEST(Softmax, GradientOfARowWorkedOutByHand) {
  Program p;
  const ValueId y = source(p, "y", DType::f64, {1, 3}), dy = source(p, "dy", DType::f64, {1, 3});
  (void)softmax_backward(p, f64_math, "dx", y, dy);
  TextbookRun run(p);
  run.set(y, {0.125, 0.25, 0.625});
  run.set(dy, {1, 2, 3});
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{-0.1875, -0.125, 0.3125}));
}

TEST(Softmax, GradientsAgreeWithCentralDifferences) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {3, 5});
  const ValueId y = softmax_forward(p, f64_math, "y", x);
  expect_derivative_agrees(p, y, {{x, spread(15, 3)}}, {x});
}

struct Fault {
  bool last_missing = false;
  bool rounded_sum = false;
  bool no_projection = false;
};

std::array<int, 2> rejected(DType type, const Fault& fault) {
  constexpr std::int64_t rows = 12, n = 700;
  Program p;
  const ValueId x = source(p, "x", type, {rows, n}), y = source(p, "y", type, {rows, n}),
                dy = source(p, "dy", type, {rows, n});
  (void)softmax_forward(p, f32_math, "forward", x);
  (void)softmax_backward(p, f32_math, "backward", y, dy);
  TextbookRun run(p);
  std::vector<double> logits = spread(rows * n, 5);
  for (double& logit : logits) logit *= 6.0;
  run.set(x, logits);
  run.set(dy, spread(rows * n, 6));
  logits = run.get(x);
  const std::vector<double> gradients = run.get(dy);
  std::vector<double> got(logits.size()), dx(logits.size());
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t first = row * n;
    float sum = 0.0F;
    for (std::size_t i = 0; i < n - (fault.last_missing ? 1 : 0); ++i)
      sum += std::exp(static_cast<float>(logits[first + i]) - 6.0F);
    if (fault.rounded_sum) sum = static_cast<float>(round_to(DType::bf16, sum));
    for (std::size_t i = first; i < first + n; ++i)
      got[i] = round_to(type, std::exp(static_cast<float>(logits[i]) - 6.0F) / sum);
    float projection = 0.0F;
    for (std::size_t i = first; i < first + n && !fault.no_projection; ++i)
      projection += static_cast<float>(got[i]) * static_cast<float>(gradients[i]);
    for (std::size_t i = first; i < first + n; ++i)
      dx[i] = round_to(type, static_cast<float>(got[i]) * (static_cast<float>(gradients[i]) - projection));
  }
  run.set(y, got);
  std::array<int, 2> bad{};
  const std::vector<Expected> of_y = run.judge(0, 0), of_dx = run.judge(1, 0);
  for (std::size_t i = 0; i < got.size(); ++i) {
    bad[0] += within(of_y[i], type, got[i]) ? 0 : 1;
    bad[1] += within(of_dx[i], type, dx[i]) ? 0 : 1;
  }
  return bad;
}

TEST(Softmax, CorrectSinglePrecisionIsAcceptedAndFaultsAreRejected) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16})
    EXPECT_EQ(rejected(type, {}), (std::array<int, 2>{})) << name(type);
  EXPECT_GT(rejected(DType::f32, {.last_missing = true})[0], 12 * 700 / 2);
  EXPECT_GT(rejected(DType::f32, {.rounded_sum = true})[0], 12 * 700 / 2);
  EXPECT_GT(rejected(DType::f32, {.no_projection = true})[1], 12 * 700 / 2);
}

TEST(Softmax, SubsetsAgreeWithTheWhole) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 9, 7});
  (void)softmax_backward(p, f32_math, "dx", softmax_forward(p, f32_math, "y", x), x);
  TextbookRun run(p);
  run.set(x, spread(126, 4));
  run.run(0);
  for (const int op : {0, 1}) expect_subsets_agree(run, op, 0);
}

TEST(Softmax, CostReadsAndWritesEveryElementOnce) {
  Program p;
  const ValueId x = source(p, "x", DType::bf16, {4, 8});
  const ValueId y = softmax_forward(p, f32_math, "y", x);
  (void)softmax_backward(p, f32_math, "dx", y, x);
  EXPECT_EQ(cost_of(p, p.op(0)).bytes, 2.0 * 32 * 2);
  EXPECT_EQ(cost_of(p, p.op(1)).bytes, 3.0 * 32 * 2);
}

TEST(Softmax, WhatDoesNotFitIsRefusedByName) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4, 8}), other = source(p, "other", DType::f32, {8, 4});
  EXPECT_NE(program_error([&] { (void)softmax_backward(p, f32_math, "dx", x, other); }).find("'other' has shape"),
            std::string::npos);
}

}  // namespace softmax_test
}  // namespace gpubench::testing
