#include "reference/ops/conv2d_batch_norm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace conv2d_batch_norm_test {

struct Example {
  Program program;
  ValueId x, filter;
  BatchNormChannels channels;
  std::optional<ValueId> r;
  Conv2dBatchNormForward out;

  Example(DType type, const Shape& data, const Shape& weights, const Conv2dBatchNorm& attributes = {}) {
    const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
    const Conv2dExtents e = extents_of(attributes.conv, data, weights);
    x = source(program, "x", type, data);
    filter = source(program, "filter", type, weights);
    const auto of_channels = [&](const char* name) { return source(program, name, wide, {e.k}); };
    channels = {of_channels("gamma"), of_channels("beta"), of_channels("mean0"), of_channels("var0")};
    if (attributes.r) r = source(program, "r", type, {e.n, e.p, e.q, e.k});
    out = conv2d_batch_norm_forward(program, attributes, {.accumulate = wide}, "op", x, filter, channels, r);
  }
};

enum Output { product_output, y_output, mean_output, rstd_output, running_mean_output, running_var_output };

// A filter that keeps channel 0 and doubles channel 1 gives (1, 3, 5, 7), mean 4, variance 5, or 20 / 3 without bias,
// and four times 2, variance 0. Epsilon 4 gives rstd 1/3 and 1/2.
TEST(Conv2dBatchNorm, ChannelsWorkedOutByHand) {
  for (const bool relu : {false, true}) {
    Example s(DType::f64, {2, 1, 2, 2}, {2, 1, 1, 2},
              {.norm = {.epsilon = 4.0, .momentum = 0.25}, .relu = relu, .r = relu});
    TextbookRun run(s.program);
    run.set(s.x, {1, 1, 3, 1, 5, 1, 7, 1});
    run.set(s.filter, {1, 0, 0, 2});
    run.set(s.channels.gamma, {3, 8});
    run.set(s.channels.beta, {10, 20});
    run.set(s.channels.running_mean, {8, -2});
    run.set(s.channels.running_var, {4, 16});
    if (relu) run.set(*s.r, {-8, 1, -9, -30, 0, 0, -12, 0.5});
    EXPECT_EQ(values_of(run.judge(0, product_output)), (std::vector<double>{1, 2, 3, 2, 5, 2, 7, 2}));
    expect_near(
        values_of(run.judge(0, y_output)),
        relu ? std::vector<double>{0, 21, 0, 0, 11, 20, 1, 20.5} : std::vector<double>{7, 20, 9, 20, 11, 20, 13, 20},
        1e-14);
    EXPECT_EQ(values_of(run.judge(0, mean_output)), (std::vector<double>{4, 2}));
    expect_near(values_of(run.judge(0, rstd_output)), {1.0 / 3.0, 0.5}, 1e-15);
    EXPECT_EQ(values_of(run.judge(0, running_mean_output)), (std::vector<double>{7, -1}));
    expect_near(values_of(run.judge(0, running_var_output)), {3 + 20.0 / 12, 12}, 1e-14);
  }
}

TEST(Conv2dBatchNorm, TheNormIsJudgedOnTheProductThatWasStored) {
  Example s(DType::f32, {1, 1, 4, 1}, {1, 1, 1, 1});
  TextbookRun run(s.program);
  run.set(s.out.product, {2, 4, 6, 8});

  EXPECT_EQ(values_of(run.judge_stored(0, mean_output)), std::vector<double>{5});
  EXPECT_EQ(values_of(run.judge_stored(0, product_output)), (std::vector<double>{0, 0, 0, 0}));
}

// (1, 3, 5, 7) in bf16, u = 2^-24, e = 2^-8 |x|: M = T / 4 + six deviations of the sum of d (less than sum e) / 4 + 2 u
// 4, with T = 4 u (16 + sqrt(84)), as no sum of neighbours is larger. The variance: T of the squares 1, 9, 25 and 49,
// whose squares are 1, 81, 625 and 2401, and the textbook's other terms.
TEST(Conv2dBatchNorm, BoundsOfTheStatisticsWorkedOutByHand) {
  Example s(DType::bf16, {1, 1, 4, 1}, {1, 1, 1, 1}, {.norm = {.epsilon = 4.0}});
  TextbookRun run(s.program);
  run.set(s.out.product, {1, 3, 5, 7});
  const auto neighbours = [](double a, double b, double c, double d) {
    return 2.0 *
           std::sqrt((a * a + (a + b) * (a + b) + (a + b + c) * (a + b + c) + (a + b + c + d) * (a + b + c + d)) / 4.0);
  };
  const double u = 0x1p-24, e = 0x1p-8;
  const double sum = 4 * u * std::max(16 + std::sqrt(84.0), neighbours(1, 3, 5, 7));
  const double of_squares = 4 * u * std::max(84 + std::sqrt(3108.0), neighbours(1, 9, 25, 49));
  const double mean = sum / 4 + 8 * u + e * std::min(16.0, 6 * std::sqrt(84.0 / 3)) / 4;
  // |x - 4| e: 3, 3, 5, 21 times 2^-8
  const double moved = 2 * e * std::min(32.0, 6 * std::sqrt((9 + 9 + 25 + 441) / 3.0)) / 4 + 84 * e * e / 4;
  const double variance = of_squares / 4 + 8 * (sum / 4 + 8 * u) + mean * mean + 3 * u * 21 + moved;

  EXPECT_NEAR(run.judge_stored(0, mean_output)[0].bound, mean, 1e-15);
  const Expected rstd = run.judge_stored(0, rstd_output)[0];
  EXPECT_NEAR(rstd.value + rstd.bound, 1 / std::sqrt(9 - variance), 1e-6);
}

/// Faults of f32 statistics that are made of sums of the product and of its squares.
struct Fault {
  bool unbiased = false;  // variance over n - 1 for normalization
  bool row_missing = false;
  bool square_missing = false;  // a row, from the sum of squares
  bool narrow_sums = false;     // rounded to bf16 on the way
  bool of_product = false;      // no fault: Welford's method on the stored product
};

/// Rejected channels of mean, rstd, running_mean', running_var', and whether an element of y is. `offset`: the mean in
/// deviations, which are 0.58 2^-(channel % 10).
std::array<int, 5> rejected(DType type, const Fault& fault, bool before_rounding, double offset) {
  constexpr std::int64_t rows = 392, c = 24;
  Example s(type, {2, 14, 14, 1}, {c, 1, 1, 1});
  TextbookRun run(s.program);
  const std::vector<double> noise = spread(rows * c, 5);
  std::vector<float> exact(noise.size());
  for (std::size_t i = 0; i < exact.size(); ++i)
    exact[i] = static_cast<float>((noise[i] + 0.58 * offset) * std::exp2(-static_cast<double>(i % c % 10)));
  run.set(s.out.product, {exact.begin(), exact.end()});
  run.set(s.channels.gamma, spread(c, 6));
  run.set(s.channels.beta, spread(c, 8));
  run.set(s.channels.running_mean, spread(c, 9));
  run.set(s.channels.running_var, std::vector<double>(c, 1.5));
  const std::vector<double> stored = run.get(s.out.product);
  const std::vector<double> gamma = run.get(s.channels.gamma), beta = run.get(s.channels.beta),
                            old_mean = run.get(s.channels.running_mean);
  const std::vector<Expected> y_judged = run.judge_stored(0, y_output);
  std::array<std::vector<Expected>, 4> judged;
  for (int i = 0; i < 4; ++i) judged.at(static_cast<std::size_t>(i)) = run.judge_stored(0, mean_output + i);
  std::array<int, 5> bad{};
  constexpr auto n = static_cast<float>(rows);
  for (std::size_t j = 0; j < c; ++j) {
    float sum = 0.0F, squares = 0.0F, running = 0.0F, m2 = 0.0F;
    for (std::size_t i = 0; i < rows; ++i) {
      const float x = before_rounding ? exact[i * c + j] : static_cast<float>(stored[i * c + j]);
      const bool last = i + 1 == rows;
      if (!(last && fault.row_missing)) sum += x;
      if (!(last && (fault.row_missing || fault.square_missing))) squares += x * x;
      const float delta = x - running;
      running += delta / static_cast<float>(i + 1);
      m2 += delta * (x - running);
    }
    if (fault.narrow_sums) {
      sum = static_cast<float>(round_to(DType::bf16, sum));
      squares = static_cast<float>(round_to(DType::bf16, squares));
    }
    const float mean = fault.of_product ? running : sum / n;
    const float variance = fault.of_product ? m2 / n : std::max(squares / n - mean * mean, 0.0F);
    const float normalizing = fault.unbiased ? variance * (n / (n - 1.0F)) : variance;
    const float rstd = 1.0F / std::sqrt(normalizing + 1e-5F);
    const std::array<float, 4> got{mean, rstd, 0.9F * static_cast<float>(old_mean[j]) + 0.1F * mean,
                                   0.9F * 1.5F + 0.1F * (variance * (n / (n - 1.0F)))};
    for (std::size_t output = 0; output < 4; ++output)
      bad.at(output) += within(judged.at(output)[j], DType::f32, got.at(output)) ? 0 : 1;
    int elements = 0;
    for (std::size_t i = j; i < stored.size(); i += c) {
      const float scale = rstd * static_cast<float>(gamma[j]);
      const float y = (static_cast<float>(stored[i]) - mean) * scale + static_cast<float>(beta[j]);
      elements += within(y_judged[i], type, round_to(type, y)) ? 0 : 1;
    }
    bad[4] += elements > 0 ? 1 : 0;
  }
  return bad;
}

TEST(Conv2dBatchNorm, StatisticsOfSumsAndOfTheProductBeforeAndAfterRoundingAreAccepted) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const double offset : {0.0, 1.0, 30.0, 300.7, 1000.0}) {
      for (const bool before : {false, true}) {
        EXPECT_EQ(rejected(type, {}, before, offset), (std::array<int, 5>{})) << name(type) << " " << offset;
        EXPECT_EQ(rejected(type, {.of_product = true}, before, offset), (std::array<int, 5>{}))
            << name(type) << " " << offset;
      }
    }
  }
}

// batch_norm_forward's bound, for sums of squared deviations, rejects sums that cancel: at a mean of 1000 deviations a
// millionth of the squares is left, and f32 resolves 1.7e7.
TEST(Conv2dBatchNorm, TheBoundHasRoomForTheCancellationAndBatchNormsHasNot) {
  Example s(DType::f32, {2, 14, 14, 1}, {1, 1, 1, 1});
  TextbookRun run(s.program);
  std::vector<double> product = spread(392, 5);
  for (double& value : product) value = static_cast<float>(value + 580.0);
  run.set(s.out.product, product);
  float sum = 0.0F, squares = 0.0F;
  for (const double value : product) {
    const auto x = static_cast<float>(value);
    sum += x;
    squares += x * x;
  }
  const float mean = sum / 392.0F;
  const double rstd = 1.0F / std::sqrt(std::max(squares / 392.0F - mean * mean, 0.0F) + 1e-5F);
  Program apart;
  const ValueId x = source(apart, "x", DType::f32, {392, 1}), one = source(apart, "one", DType::f32, {1});
  (void)batch_norm_forward(apart, {}, f32_math, "norm", x,
                           {one, one, source(apart, "mean0", DType::f32, {1}), source(apart, "var0", DType::f32, {1})});
  TextbookRun alone(apart);
  alone.set(x, product);

  EXPECT_TRUE(within(run.judge_stored(0, rstd_output)[0], DType::f32, rstd));
  EXPECT_FALSE(within(alone.judge(0, 2)[0], DType::f32, rstd));
}

constexpr int channels = 24;

// A row is a 392nd of a sum. Before rounding to bf16 a sum may differ by 6 / sqrt(3) 2^-8 / sqrt(392), a fourth of a
// row of average size: smaller ones may be missing.
TEST(Conv2dBatchNorm, FaultsOfTheStatisticsAreRejected) {
  EXPECT_EQ(rejected(DType::f32, {.unbiased = true}, true, 0.0)[1], channels);
  const auto expect_some = [](DType type, int of_mean, int of_rstd) {
    EXPECT_GE(rejected(type, {.row_missing = true}, true, 1.0)[0], of_mean) << name(type);
    EXPECT_GE(rejected(type, {.square_missing = true}, true, 1.0)[1], of_rstd) << name(type);
    EXPECT_GE(rejected(type, {.narrow_sums = true}, true, 1.0)[0], channels / 2) << name(type);
  };
  expect_some(DType::f32, channels, channels * 3 / 4);
  expect_some(DType::f16, channels * 3 / 4, channels / 2);
  expect_some(DType::bf16, channels / 2, channels / 4);
}

TEST(Conv2dBatchNorm, SubsetsAgreeWithTheWhole) {
  Example s(DType::f32, {2, 3, 5, 3}, {7, 2, 2, 3}, {.relu = true, .r = true});
  TextbookRun run(s.program);
  run.set(s.x, spread(90, 5));
  run.set(s.filter, spread(84, 7));
  run.set(s.channels.gamma, spread(7, 6));
  run.set(*s.r, spread(112, 4));
  for (int output = 0; output < 6; ++output) expect_subsets_agree(run, 0, output);
}

// 2 * 2 * 2 * 2 * 5 products of 3 channels; norm, residual and ReLU of 40 elements.
TEST(Conv2dBatchNorm, CostIsThatOfBothWithEveryTensorOnce) {
  const Example s(DType::bf16, {2, 2, 2, 3}, {5, 1, 1, 3}, {.relu = true, .r = true});
  const Cost cost = cost_of(s.program, s.program.op(0));
  EXPECT_EQ(cost.flop, 2.0 * 40 * 3 + 10.0 * 40);
  EXPECT_EQ(cost.bytes, 2.0 * (24 + 15 + 3 * 40) + 8 * 5 * 4);  // x, filter, r, product, y; four read, four written
}

TEST(Conv2dBatchNorm, BoundsSayWhatTheyAllow) {
  const Example narrow(DType::bf16, {1, 2, 2, 1}, {1, 1, 1, 1}), wide(DType::f32, {1, 2, 2, 1}, {1, 1, 1, 1});
  const auto bound = [](const Example& s, int output) {
    const OpCall& call = s.program.op(0);
    return definition(call.kind).bound({call, specs_of(s.program, call.inputs), specs_of(s.program, call.outputs)},
                                       output);
  };
  const std::string t = "T = 2 u sqrt(4) max(|C| + Q, 2 S) / 4";
  EXPECT_EQ(bound(wide, mean_output), "x is the product as stored: T + 2 u |mean|, " + t + ", u = 2^-24");
  EXPECT_EQ(bound(narrow, mean_output),
            "x is the product as stored: T + R + 2 u |mean|, " + t +
                ", R = min(sum e, 6 sigma) / 4 (sum e / 4 where var < 4 mean e^2), e = 2^-8 |x|, u = 2^-24");
  EXPECT_NE(bound(narrow, rstd_output).find("V = T of x^2 + 2 |mean| (T + 2 u |mean|) + M^2 + 3 u (var + mean^2)"),
            std::string::npos)
      << bound(narrow, rstd_output);
}

TEST(Conv2dBatchNorm, WhatDoesNotFitIsRefusedByName) {
  const auto message = [](const Shape& data, const Shape& weights, const Conv2dBatchNorm& attributes) {
    return program_error([&] { Example(DType::f32, data, weights, attributes); });
  };
  EXPECT_NE(message({1, 1, 1, 3}, {4, 1, 1, 3}, {}).find("n p q of at least two"), std::string::npos);
  EXPECT_NE(message({1, 4, 4, 3}, {4, 1, 1, 3}, {.r = true}).find("r with relu only"), std::string::npos);
  Example s(DType::f32, {1, 4, 4, 3}, {4, 1, 1, 3});
  EXPECT_NE(program_error([&] {
              (void)conv2d_batch_norm_forward(s.program, {.relu = true, .r = true}, f32_math, "op", s.x, s.filter,
                                              s.channels, s.x);
            }).find("tensor 'x' has shape [1, 4, 4, 3]; expected [1, 4, 4, 4]"),
            std::string::npos);
}

}  // namespace conv2d_batch_norm_test
}  // namespace gpubench::testing
