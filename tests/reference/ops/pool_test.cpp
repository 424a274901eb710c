#include "reference/ops/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <optional>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace pool_test {

constexpr Pool three_by_two{.window_h = 1, .window_w = 3, .stride_w = 2, .pad_w = 1};

// Windows of one row, at columns -1 to 1, 1 to 3 and 3 to 5; tap 0 of the first and tap 2 of the last are padding.
TEST(MaxPool, ARowWorkedOutByHand) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {1, 1, 5, 1});
  (void)max_pool_forward(p, three_by_two, f32_math, "pool", x);
  TextbookRun run(p);
  run.set(x, {-5, -3, 7, 7, 2});
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{-3, 7, 7}));  // not the padding's zero
  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{2, 1, 0}));   // the first of two sevens
}

/// Expected y and index of one window of a row, given the written `index`, if any.
std::vector<Expected> of_window(const std::vector<double>& row, std::optional<double> index = {}) {
  Program p;
  const auto width = static_cast<std::int64_t>(row.size());
  const ValueId x = source(p, "x", DType::f32, {1, 1, width, 1});
  const MaxPoolForward pool = max_pool_forward(p, {.window_w = width}, f32_math, "pool", x);
  TextbookRun run(p);
  run.set(x, row);
  if (!index) return {run.judge(0, 0)[0], run.judge(0, 1)[0]};
  run.set(pool.index, {*index});
  return {run.judge_stored(0, 0)[0], run.judge_stored(0, 1)[0]};
}

TEST(MaxPool, ANanIsLargerThanAnyNumberAndAnyOfSeveralMayBeTaken) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> row{1, nan, nan, 9};
  EXPECT_TRUE(std::isnan(of_window(row)[0].value));
  EXPECT_EQ(of_window(row, 1.0)[1].value, 1);
  EXPECT_EQ(of_window(row, 2.0)[1].value, 2);
  EXPECT_EQ(of_window(row, 3.0)[1].value, 1);
}

TEST(MaxPool, OfEqualElementsAnyMayBeTakenAndNoOther) {
  const std::vector<double> row{-0.0, 0.0, -3, 0.0};
  for (const int equal : {0, 1, 3}) {
    const std::vector<Expected> judged = of_window(row, equal);
    EXPECT_EQ(judged[1].value, equal);
    EXPECT_EQ(std::signbit(judged[0].value), equal == 0) << "y is the element that the index names";
  }
  EXPECT_EQ(of_window(row, 2.0)[1].value, 0);
  EXPECT_EQ(of_window(row, 7.0)[1].value, 0);
}

// A row of 5, windows of 2 at every second column, padding 1: at -1, 1, 3; a fourth would begin in the padding behind.
// A row of 6, windows of 3 at every third: at -1, 2 and 5; the last reaches past the padding.
TEST(Pool, InCeilModeALastWindowMayReachPastThePadding) {
  const auto means = [](std::vector<double> row, Pool pool) {
    pool.ceil_mode = true;
    pool.pad_w = 1;
    Program p;
    const ValueId x = source(p, "x", DType::f64, {1, 1, static_cast<std::int64_t>(row.size()), 1});
    (void)average_pool_forward(p, pool, f64_math, "pool", x);
    TextbookRun run(p);
    run.set(x, row);
    return values_of(run.judge(0, 0));
  };
  EXPECT_EQ(means({1, 2, 3, 4, 5}, {.window_w = 2, .stride_w = 2}), (std::vector<double>{1, 2.5, 4.5}));
  EXPECT_EQ(means({2, 4, 6, 8, 10, 12}, {.window_w = 3, .stride_w = 3}), (std::vector<double>{3, 8, 12}));
  // In the last window the column and the padding count, but not positions past it.
  EXPECT_EQ(means({2, 4, 6, 8, 10, 12}, {.window_w = 3, .stride_w = 3, .counts_padding = true}),
            (std::vector<double>{2, 8, 6}));
}

// Column 1 is tap 2 of the first window and tap 0 of the second; both chose it.
TEST(MaxPool, AGradientIsTheSumOverTheWindowsThatChoseTheElement) {
  Program p;
  const ValueId dy = source(p, "dy", DType::f32, {1, 1, 3, 1});
  const ValueId index = source(p, "index", DType::u8, {1, 1, 3, 1});
  (void)max_pool_backward(p, three_by_two, f32_math, "back", dy, index, 1, 5);
  TextbookRun run(p);
  run.set(dy, {1, 10, 100});
  run.set(index, {2, 0, 1});
  const std::vector<Expected> dx = run.judge(0, 0);
  EXPECT_EQ(values_of(dx), (std::vector<double>{0, 11, 0, 0, 100}));
  EXPECT_GT(dx[1].bound, 0.0);
  EXPECT_EQ(dx[4].bound, 0.0);
}

// (1 + 2) / 2, (2 + 3 + 4) / 3, (4 + 5) / 2; with the padding all over 3.
TEST(AveragePool, CountsThePaddingOnlyWhereItIsAskedTo) {
  for (const bool counts : {false, true}) {
    Program p;
    const ValueId x = source(p, "x", DType::f64, {1, 1, 5, 1});
    Pool pool = three_by_two;
    pool.counts_padding = counts;
    (void)average_pool_forward(p, pool, f64_math, "pool", x);
    TextbookRun run(p);
    run.set(x, {1, 2, 3, 4, 5});
    expect_near(values_of(run.judge(0, 0)), counts ? std::vector<double>{1, 3, 3} : std::vector<double>{1.5, 3, 4.5},
                1e-15);
  }
}

TEST(AveragePool, OfAWholeImageIsItsMean) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {1, 2, 2, 2});
  const ValueId y = global_average_pool_forward(p, f64_math, "mean", x);
  EXPECT_EQ(p.spec(y).shape, (Shape{1, 1, 1, 2}));
  TextbookRun run(p);
  run.set(x, {1, 10, 2, 20, 3, 30, 6, 60});
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{3, 30}));
}

TEST(Pool, GradientsAgreeWithCentralDifferences) {
  for (const Pool& pool : {Pool{.window_h = 3, .window_w = 2, .stride_h = 2, .pad_h = 1},
                           Pool{.window_h = 2, .window_w = 3, .stride_w = 2, .pad_w = 2, .counts_padding = true},
                           Pool{.window_h = 1, .window_w = 2, .stride_h = 2, .stride_w = 3},
                           Pool{.window_h = 2,
                           .window_w = 3,
                           .stride_h = 2,
                           .stride_w = 3,
                           .pad_w = 1,
                           .counts_padding = true,
                           .ceil_mode = true}}) {
    for (const bool largest : {true, false}) {
      Program p;
      const ValueId x = source(p, "x", DType::f64, {2, 5, 4, 2});
      const ValueId y = largest ? max_pool_forward(p, pool, f64_math, "pool", x).y
                                : average_pool_forward(p, pool, f64_math, "pool", x);
      expect_derivative_agrees(p, y, {{x, spread(80, 3)}}, {x});
    }
  }
}

TEST(Pool, SubsetsAgreeWithTheWhole) {
  const Pool pool{.window_h = 3, .window_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1};
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 7, 6, 3});
  const MaxPoolForward largest = max_pool_forward(p, pool, f32_math, "max", x);
  (void)max_pool_backward(p, pool, f32_math, "max.backward", largest.y, largest.index, 7, 6);
  const ValueId mean = average_pool_forward(p, pool, f32_math, "mean", x);
  (void)average_pool_backward(p, pool, f32_math, "mean.backward", mean, 7, 6);
  TextbookRun run(p);
  run.set(x, spread(2 * 7 * 6 * 3, 5));
  run.run();
  for (const int op : {0, 1, 2, 3}) expect_subsets_agree(run, op, 0);
  expect_subsets_agree(run, 0, 1);
}

TEST(AveragePool, SinglePrecisionIsAcceptedAndAWindowThatIsOneShortIsNot) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const bool short_by_one : {false, true}) {
      Program p;
      const ValueId x = source(p, "x", type, {1, 16, 16, 49});
      // Channels are last, so a window of 1 x 7 covers 49 elements along the row.
      (void)average_pool_forward(p, {.window_w = 7, .stride_w = 3}, f32_math, "pool", x);
      TextbookRun run(p);
      run.set(x, spread(16 * 16 * 49, 8));
      const std::vector<double> data = run.get(x);
      const std::vector<Expected> judged = run.judge(0, 0);
      int wrong = 0;
      for (std::size_t i = 0; i < judged.size(); ++i) {
        const std::size_t c = i % 49, q = i / 49 % 4, row = i / 49 / 4;
        float sum = 0.0F;
        for (std::size_t tap = 0; tap < (short_by_one ? 6U : 7U); ++tap)
          sum += static_cast<float>(data[(row * 16 + q * 3 + tap) * 49 + c]);
        wrong += within(judged[i], type, round_to(type, sum * (1.0F / 7.0F))) ? 0 : 1;
      }
      if (short_by_one) {
        EXPECT_GT(wrong, 16 * 4 * 49 * 9 / 10) << name(type);
      } else {
        EXPECT_EQ(wrong, 0) << name(type);
      }
    }
  }
}

TEST(Pool, WhatDoesNotFitIsNamed) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {1, 4, 4, 2});
  const auto message = [&](const Pool& pool) {
    return program_error([&] { (void)max_pool_forward(p, pool, f32_math, "pool", x); });
  };
  EXPECT_NE(message({.window_h = 5}).find("[1, 4, 4, 2] and attributes {window_h=5, window_w=1}"), std::string::npos);
  EXPECT_NE(message({.window_h = 2, .pad_h = 2}).find("padding narrower than the window"), std::string::npos);
  EXPECT_NE(message({.window_h = 2, .stride_h = 0}).find("strides of at least 1"), std::string::npos);
  const ValueId large = source(p, "large", DType::f32, {1, 17, 17, 1});
  const std::string most =
      program_error([&] { (void)max_pool_forward(p, {.window_h = 17, .window_w = 17}, f32_math, "pool", large); });
  EXPECT_NE(most.find("at most 256 elements"), std::string::npos) << most;
  const ValueId dy = source(p, "dy", DType::f32, {1, 2, 2, 2});
  const std::string backward =
      program_error([&] { (void)average_pool_backward(p, {.window_h = 2, .window_w = 2}, f32_math, "b", dy, 4, 4); });
  EXPECT_NE(backward.find("expected [1, 3, 3, 2]"), std::string::npos) << backward;
}

TEST(Pool, CostCountsEveryElementOnce) {
  Program p;
  const ValueId x = source(p, "x", DType::bf16, {2, 8, 8, 16});
  (void)max_pool_forward(p, {.window_h = 2, .window_w = 2, .stride_h = 2, .stride_w = 2}, f32_math, "pool", x);
  const Cost cost = cost_of(p, p.op(0));
  EXPECT_EQ(cost.flop, 2.0 * 4 * 4 * 16 * 4);
  EXPECT_EQ(cost.bytes, 2.0 * 64 * 16 * 2 + 2.0 * 16 * 16 * (2 + 1));
}

}  // namespace pool_test
}  // namespace gpubench::testing
