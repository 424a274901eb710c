#include "reference/ops/batch_norm.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <numeric>
#include <optional>

#include "reference/ops/pointwise.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace batch_norm_test {

struct Example {
  Program program;
  ValueId dy, x, mean, rstd;
  BatchNormChannels channels;
  BatchNormForward forward;
  BatchNormBackward backward;

  Example(DType type, const Shape& shape, const BatchNorm& attributes = {}) {
    const Math math = type == DType::f64 ? f64_math : f32_math;
    const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
    const Shape c{shape[-1]};
    dy = source(program, "dy", type, shape, Role::gradient);
    x = source(program, "x", type, shape);
    channels = {source(program, "gamma", wide, c, Role::parameter), source(program, "beta", wide, c, Role::parameter),
                source(program, "running_mean", wide, c, Role::state),
                source(program, "running_var", wide, c, Role::state)};
    mean = source(program, "mean", wide, c);
    rstd = source(program, "rstd", wide, c);
    forward = batch_norm_forward(program, attributes, math, "norm", x, channels);
    backward = batch_norm_backward(program, math, "back", dy, x, channels.gamma, mean, rstd);
  }
};

enum Output { y_output, mean_output, rstd_output, running_mean_output, running_var_output };

// Channel 0: (1, 3, 5, 7), mean 4, variance 20 / 4 = 5, or 20 / 3 without bias. Epsilon 4 gives rstd 1/3. Channel 1:
// all 2, variance 0, rstd 1/2.
TEST(BatchNorm, ChannelsWorkedOutByHand) {
  Example s(DType::f64, {2, 1, 2, 2}, {.epsilon = 4.0, .momentum = 0.25});
  TextbookRun run(s.program);
  run.set(s.x, {1, 2, 3, 2, 5, 2, 7, 2});
  run.set(s.channels.gamma, {3, 8});
  run.set(s.channels.beta, {10, 20});
  run.set(s.channels.running_mean, {8, -2});
  run.set(s.channels.running_var, {4, 16});
  expect_near(values_of(run.judge(0, y_output)), {7, 20, 9, 20, 11, 20, 13, 20}, 1e-14);
  EXPECT_EQ(values_of(run.judge(0, mean_output)), (std::vector<double>{4, 2}));
  EXPECT_EQ(values_of(run.judge(0, rstd_output)), (std::vector<double>{1.0 / 3.0, 0.5}));
  EXPECT_EQ(values_of(run.judge(0, running_mean_output)), (std::vector<double>{7, -1}));
  expect_near(values_of(run.judge(0, running_var_output)), {3 + 20.0 / 12, 12}, 1e-14);
}

// The same y, plus r: 7 - 8 < 0, 20 + 1, 9 - 9 = 0, 20 - 30 < 0, ...
TEST(BatchNorm, TheFusedOpAddsTheResidualAndCutsAtZero) {
  Example s(DType::f64, {2, 1, 2, 2});
  const ValueId r = source(s.program, "r", DType::f64, {2, 1, 2, 2});
  (void)batch_norm_relu_forward(s.program, {.epsilon = 4.0, .momentum = 0.25}, f64_math, "fused", s.x, s.channels, r);
  TextbookRun run(s.program);
  run.set(s.x, {1, 2, 3, 2, 5, 2, 7, 2});
  run.set(s.channels.gamma, {3, 8});
  run.set(s.channels.beta, {10, 20});
  run.set(r, {-8, 1, -9, -30, 0, 0, -12, 0.5});
  expect_near(values_of(run.judge(2, y_output)), {0, 21, 0, 0, 11, 20, 1, 20.5}, 1e-14);
}

// Saved mean 4 and rstd 1/2: xhat = (-3, -1, 1, 3) / 2; dy = (1, 2, 3, 10) sums to 16, and times xhat to 14. With gamma
// 4 dx = 2 (dy - 16/4 - xhat 14/4).
TEST(BatchNorm, GradientsOfAChannelWorkedOutByHandTakeTheSavedStatistics) {
  Example s(DType::f64, {4, 1});
  TextbookRun run(s.program);
  run.set(s.x, {1, 3, 5, 7});
  run.set(s.dy, {1, 2, 3, 10});
  run.set(s.channels.gamma, {4});
  run.set(s.mean, {4});
  run.set(s.rstd, {0.5});
  EXPECT_EQ(values_of(run.judge(1, 0)), (std::vector<double>{4.5, -0.5, -5.5, 1.5}));
  EXPECT_EQ(values_of(run.judge(1, 1)), (std::vector<double>{14}));
  EXPECT_EQ(values_of(run.judge(1, 2)), (std::vector<double>{16}));
}

/// batch_norm_relu_backward, and the separate ops on the same tensors.
struct FusedExample {
  Program program;
  ValueId y, dy, dy2, x, gamma, mean, rstd;
  std::vector<ValueId> fused, apart;

  FusedExample(DType type, const Shape& shape, bool two, bool dr) {
    const Math math = type == DType::f64 ? f64_math : f32_math;
    const auto data = [&](const char* name) { return source(program, name, type, shape); };
    const auto of_channels = [&](const char* name) {
      return source(program, name, type == DType::f64 ? type : DType::f32, Shape{shape[-1]});
    };
    y = data("y"), dy = data("dy"), dy2 = data("dy2"), x = data("x");
    gamma = of_channels("gamma"), mean = of_channels("mean"), rstd = of_channels("rstd");
    const auto second = two ? std::optional(dy2) : std::nullopt;
    fused = batch_norm_relu_backward(program, {two, dr}, math, "fused", {x, gamma, mean, rstd, y}, dy, second);
    const ValueId sum = two ? add(program, math, "sum", dy, dy2) : dy;
    const ValueId selected = relu_backward(program, math, "relu", y, sum);
    const BatchNormBackward norm = batch_norm_backward(program, math, "norm", selected, x, gamma, mean, rstd);
    apart = {norm.dx, norm.dgamma, norm.dbeta, selected};
    if (!dr) apart.pop_back();
  }
  void fill(TextbookRun& run) const {
    for (const ValueId id : {y, dy, dy2, x, gamma, mean, rstd})
      run.set(id, spread(program.spec(id).shape.elements(), static_cast<std::uint64_t>(id.index + 1)));
  }
};

// As above where y is positive: of dy + dy2 = (1, 2, 3, 10) the third is left out. (1, 2, 0, 10) sums to 13, and times
// xhat to 25/2; dx = 2 (dr - 13/4 - xhat 25/8).
TEST(BatchNorm, TheFusedGradientLeavesOutWhereYIsNotPositive) {
  FusedExample s(DType::f64, {4, 1}, true, true);
  TextbookRun run(s.program);
  run.set(s.x, {1, 3, 5, 7});
  run.set(s.y, {2, 0.5, 0, 8});
  run.set(s.dy, {0, 5, 1, 4});
  run.set(s.dy2, {1, -3, 2, 6});
  run.set(s.gamma, {4});
  run.set(s.mean, {4});
  run.set(s.rstd, {0.5});
  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{4.875, 0.625, -9.625, 4.125}));
  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{12.5}));
  EXPECT_EQ(values_of(run.judge(0, 2)), (std::vector<double>{13}));
  EXPECT_EQ(values_of(run.judge(0, 3)), (std::vector<double>{1, 2, 0, 10}));
}

TEST(BatchNorm, TheFusedGradientIsThatOfTheOpsItStandsFor) {
  for (const auto& [two, dr] : {std::pair{false, false}, std::pair{false, true}, std::pair{true, true}}) {
    const FusedExample s(DType::f64, {3, 5, 7}, two, dr);
    TextbookRun run(s.program);
    s.fill(run);
    run.run();
    ASSERT_EQ(s.fused.size(), s.apart.size());
    for (std::size_t i = 0; i < s.fused.size(); ++i) EXPECT_EQ(run.get(s.fused[i]), run.get(s.apart[i])) << two << dr;
    for (int output = 0; output < static_cast<int>(s.fused.size()); ++output) expect_subsets_agree(run, 0, output);
  }
}

/// Rejected elements of dx, dgamma, dbeta and dr in bf16, with sums of dr as stored or before rounding.
std::array<int, 4> rejected_fused(bool sums_unrounded, bool y_ignored) {
  constexpr std::int64_t rows = 200, c = 5;
  FusedExample s(DType::bf16, {rows, c}, true, true);
  TextbookRun run(s.program);
  s.fill(run);
  const auto y = run.get(s.y), dy = run.get(s.dy), dy2 = run.get(s.dy2), x = run.get(s.x), gamma = run.get(s.gamma),
             mean = run.get(s.mean), rstd = run.get(s.rstd);
  std::vector<double> dr(y.size()), dgamma(c), dbeta(c), dx(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double sum = y[i] > 0.0 || y_ignored ? dy[i] + dy2[i] : 0.0;
    dr[i] = round_to(DType::bf16, sum);
    const double summed = sums_unrounded ? sum : dr[i];
    dbeta[i % c] += summed;
    dgamma[i % c] += summed * ((x[i] - mean[i % c]) * rstd[i % c]);
  }
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::size_t j = i % c;
    const double xhat = (x[i] - mean[j]) * rstd[j];
    dx[i] = gamma[j] * rstd[j] * (dr[i] - (dbeta[j] + xhat * dgamma[j]) / static_cast<double>(rows));
  }
  const std::array got{dx, dgamma, dbeta, dr};
  for (std::size_t output = 0; output < got.size(); ++output) run.set(s.fused[output], got[output]);
  const std::vector<TensorSpec> outputs = specs_of(s.program, s.program.op(0).outputs);
  std::array<int, 4> bad{};
  for (std::size_t output = 0; output < got.size(); ++output) {
    const std::vector<Expected> judged = run.judge_stored(0, static_cast<int>(output));
    for (std::size_t i = 0; i < judged.size(); ++i) {
      const DType stored = outputs[output].dtype;
      bad[output] += within(judged[i], stored, round_to(stored, got[output][i])) ? 0 : 1;
    }
  }
  return bad;
}

TEST(BatchNorm, TheFusedSumsMayBeOfTheGradientBeforeItIsRounded) {
  EXPECT_EQ(rejected_fused(true, false), (std::array<int, 4>{}));
  EXPECT_EQ(rejected_fused(false, false), (std::array<int, 4>{}));
}

// Results that follow from a wrong dr are accepted, so that each fault is reported once.
TEST(BatchNorm, AFusedGradientThatIgnoresYIsRejected) {
  const std::array<int, 4> wrong = rejected_fused(false, true);
  EXPECT_GT(wrong[3], 400);
  EXPECT_EQ(wrong[0] + wrong[1] + wrong[2], 0);
}

TEST(BatchNorm, GradientsAgreeWithCentralDifferences) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {2, 2, 2, 3});
  const auto of_channels = [&](const char* name) { return source(p, name, DType::f64, {3}); };
  const BatchNormChannels c{of_channels("gamma"), of_channels("beta"), of_channels("mean0"), of_channels("var0")};
  const BatchNormForward out = batch_norm_forward(p, {}, f64_math, "norm", x, c);
  const std::map<ValueId, std::vector<double>> fixed{{x, spread(24, 1)},
                                                     {c.gamma, spread(3, 2)},
                                                     {c.beta, spread(3, 3)},
                                                     {c.running_mean, spread(3, 4)},
                                                     {c.running_var, {1, 2, 3}}};
  expect_derivative_agrees(p, out.y, fixed, {x, c.gamma, c.beta});
}

// y is at least 0.3 away from zero, so that no difference of 1e-6 crosses the kink.
TEST(BatchNorm, GradientsOfTheFusedOpAgreeWithCentralDifferences) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {2, 2, 2, 3}), r = source(p, "r", DType::f64, {2, 2, 2, 3});
  const auto of_channels = [&](const char* name) { return source(p, name, DType::f64, {3}); };
  const BatchNormChannels c{of_channels("gamma"), of_channels("beta"), of_channels("mean0"), of_channels("var0")};
  const BatchNormForward out = batch_norm_relu_forward(p, {}, f64_math, "norm", x, c, r);
  std::vector<double> far(24);
  for (std::size_t i = 0; i < far.size(); ++i) far[i] = i % 2 == 0 ? 9.0 : -9.0;
  const std::map<ValueId, std::vector<double>> fixed{{x, spread(24, 1)},
                                                     {r, far},
                                                     {c.gamma, spread(3, 2)},
                                                     {c.beta, spread(3, 3)},
                                                     {c.running_mean, spread(3, 4)},
                                                     {c.running_var, {1, 2, 3}}};
  expect_derivative_agrees(p, out.y, fixed, {x, r, c.gamma, c.beta});
}

struct Fault {
  bool unbiased = false;        // variance over n - 1 for normalization
  bool biased_running = false;  // variance over n for the running one
  bool epsilon_outside = false;
  bool row_missing = false;    // the last one, from the mean
  bool wrong_weight = false;   // momentum and 1 - momentum exchanged
  bool no_projection = false;  // dx without the sum of dy xhat
};

std::array<int, 8> rejected(DType type, const Fault& fault, float offset = 0.5F) {
  constexpr std::int64_t rows = 392, c = 24;
  constexpr auto n = static_cast<float>(rows);
  Example s(type, {2, 14, 14, c});
  TextbookRun run(s.program);
  std::vector<double> data = spread(rows * c, 5);
  for (std::size_t i = 0; i < data.size(); ++i)
    data[i] = (data[i] + offset) * std::exp2(-static_cast<double>(i % c % 10));
  run.set(s.x, data);
  run.set(s.dy, spread(rows * c, 7));
  run.set(s.channels.gamma, spread(c, 6));
  run.set(s.channels.beta, spread(c, 8));
  run.set(s.channels.running_mean, spread(c, 9));
  run.set(s.channels.running_var, std::vector<double>(c, 1.5));
  const auto floats = [&](ValueId id) {
    const std::vector<double> values = run.get(id);
    return std::vector<float>(values.begin(), values.end());
  };
  const auto x = floats(s.x), dy = floats(s.dy), gamma = floats(s.channels.gamma), beta = floats(s.channels.beta),
             old_mean = floats(s.channels.running_mean), old_var = floats(s.channels.running_var);
  std::vector<float> y(x.size()), dx(x.size()), mean(c), rstd(c), running_mean(c), running_var(c), dgamma(c), dbeta(c);
  for (std::size_t j = 0; j < c; ++j) {
    float sum = 0.0F, squares = 0.0F;
    for (std::size_t i = j; i < x.size() - (fault.row_missing ? c : 0); i += c) sum += x[i];
    mean[j] = sum / n;
    for (std::size_t i = j; i < x.size(); i += c) squares += (x[i] - mean[j]) * (x[i] - mean[j]);
    const float biased = squares / n, unbiased = squares / (n - 1.0F);
    const float var = fault.unbiased ? unbiased : biased;
    rstd[j] = fault.epsilon_outside ? 1.0F / (std::sqrt(var) + 1e-5F) : 1.0F / std::sqrt(var + 1e-5F);
    const float momentum = fault.wrong_weight ? 0.9F : 0.1F;
    running_mean[j] = (1.0F - momentum) * old_mean[j] + momentum * mean[j];
    running_var[j] = (1.0F - momentum) * old_var[j] + momentum * (fault.biased_running ? biased : unbiased);
    for (std::size_t i = j; i < x.size(); i += c) {
      const float xhat = (x[i] - mean[j]) * rstd[j];
      y[i] = xhat * gamma[j] + beta[j];
      dgamma[j] += dy[i] * xhat;
      dbeta[j] += dy[i];
    }
    const float projected = fault.no_projection ? 0.0F : dgamma[j];
    for (std::size_t i = j; i < x.size(); i += c) {
      const float xhat = (x[i] - mean[j]) * rstd[j];
      dx[i] = gamma[j] * rstd[j] * (dy[i] - dbeta[j] / n - xhat * projected / n);
    }
  }
  run.set(s.mean, std::vector<double>(mean.begin(), mean.end()));
  run.set(s.rstd, std::vector<double>(rstd.begin(), rstd.end()));
  const auto count = [&](int op, int output, const std::vector<float>& got, DType stored) {
    const std::vector<Expected> judged = run.judge(op, output);
    int bad = 0;
    for (std::size_t i = 0; i < got.size(); ++i) bad += within(judged[i], stored, round_to(stored, got[i])) ? 0 : 1;
    return bad;
  };
  return {count(0, y_output, y, type),
          count(0, mean_output, mean, DType::f32),
          count(0, rstd_output, rstd, DType::f32),
          count(0, running_mean_output, running_mean, DType::f32),
          count(0, running_var_output, running_var, DType::f32),
          count(1, 0, dx, type),
          count(1, 1, dgamma, DType::f32),
          count(1, 2, dbeta, DType::f32)};
}

constexpr int channels = 24, elements = 392 * channels;

TEST(BatchNorm, CorrectSinglePrecisionIsAccepted) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    for (const float offset : {0.0F, 0.5F, 100.0F})
      EXPECT_EQ(rejected(type, {}, offset), (std::array<int, 8>{})) << name(type);
  }
}

TEST(BatchNorm, AnUnbiasedVarianceToNormalizeWithIsRejected) {
  const auto wrong = rejected(DType::f32, {.unbiased = true});
  EXPECT_GT(wrong[y_output], elements * 9 / 10);
  EXPECT_EQ(wrong[rstd_output], channels);
}

TEST(BatchNorm, ABiasedVarianceInTheRunningOneIsRejected) {
  EXPECT_GE(rejected(DType::f32, {.biased_running = true})[running_var_output], channels / 2);  // others are tiny
}

TEST(BatchNorm, EpsilonOutsideTheRootIsRejectedInSmallChannels) {
  EXPECT_GE(rejected(DType::f32, {.epsilon_outside = true})[rstd_output], channels / 2);
}

TEST(BatchNorm, ARowMissingFromTheMeanIsRejected) {
  const auto wrong = rejected(DType::f32, {.row_missing = true});
  EXPECT_EQ(wrong[mean_output], channels);
  EXPECT_GT(wrong[y_output], elements * 9 / 10);
}

TEST(BatchNorm, ARunningAverageWithTheWrongWeightIsRejected) {
  const auto wrong = rejected(DType::f32, {.wrong_weight = true});
  EXPECT_EQ(wrong[running_mean_output], channels);
  EXPECT_EQ(wrong[running_var_output], channels);
}

TEST(BatchNorm, AGradientWithoutItsProjectionIsRejected) {
  EXPECT_GT(rejected(DType::f32, {.no_projection = true})[5], elements * 9 / 10);
}

TEST(BatchNorm, SubsetsAgreeWithTheWhole) {
  Example s(DType::f32, {3, 2, 5, 7});
  TextbookRun run(s.program);
  run.set(s.x, spread(210, 5));
  run.set(s.dy, spread(210, 7));
  run.set(s.channels.gamma, spread(7, 6));
  run.set(s.channels.running_mean, spread(7, 9));
  run.set(s.rstd, std::vector<double>(7, 1.5));
  for (int output = 0; output < 5; ++output) expect_subsets_agree(run, 0, output);
  for (int output = 0; output < 3; ++output) expect_subsets_agree(run, 1, output);
}

TEST(BatchNorm, CostCountsDataOnce) {
  const Example s(DType::bf16, {10, 10, 64});
  const Cost forward = cost_of(s.program, s.program.op(0));
  EXPECT_EQ(forward.flop, 8.0 * 6400);
  EXPECT_EQ(forward.bytes, 2.0 * 6400 * 2 + 8 * 64 * 4);  // x, y; four read, four written
  const Cost backward = cost_of(s.program, s.program.op(1));
  EXPECT_EQ(backward.flop, 11.0 * 6400);
  EXPECT_EQ(backward.bytes, 3.0 * 6400 * 2 + 5 * 64 * 4);
  const FusedExample fused(DType::bf16, {10, 10, 64}, false, false), both(DType::bf16, {10, 10, 64}, true, true);
  EXPECT_EQ(cost_of(fused.program, fused.program.op(0)).flop, 12.0 * 6400);
  EXPECT_EQ(cost_of(fused.program, fused.program.op(0)).bytes, 4.0 * 6400 * 2 + 5 * 64 * 4);
  EXPECT_EQ(cost_of(both.program, both.program.op(0)).flop, 13.0 * 6400);
  EXPECT_EQ(cost_of(both.program, both.program.op(0)).bytes, 6.0 * 6400 * 2 + 5 * 64 * 4);
}

TEST(BatchNorm, AGradientIntoAStatisticIsAnError) {
  for (const bool running : {false, true}) {
    Example s(DType::f64, {4, 3});
    const std::string message = refused_gradient(s.program, running ? s.forward.running_var : s.forward.rstd);
    EXPECT_NE(message.find("statistic of op 'norm'"), std::string::npos) << message;
  }
}

TEST(BatchNorm, WhatDoesNotFitIsRefusedByName) {
  EXPECT_NE(program_error([] { Example(DType::f32, {1, 1, 1, 8}); }).find("at least two rows"), std::string::npos);
  EXPECT_NE(program_error([] { Example(DType::f32, {8}); }).find("at least two rows"), std::string::npos);
  EXPECT_NE(program_error([] {
              Example(DType::f32, {4, 8}, {.momentum = 1.5});
            }).find("momentum=1.5"),
            std::string::npos);
  Program p;
  const ValueId x = source(p, "x", DType::bf16, {4, 8});
  const ValueId good = source(p, "good", DType::f32, {8}), narrow = source(p, "narrow", DType::bf16, {8}),
                few = source(p, "few", DType::f32, {7});
  const auto refused = [&](ValueId gamma) {
    return program_error([&] { (void)batch_norm_backward(p, f32_math, "b", x, x, gamma, good, good); });
  };
  EXPECT_NE(refused(few).find("'few' has shape [7]"), std::string::npos) << refused(few);
  EXPECT_NE(refused(narrow).find("'narrow'"), std::string::npos) << refused(narrow);
  const std::string alone = program_error([] { FusedExample(DType::f32, {4, 8}, true, false); });
  EXPECT_NE(alone.find("{dy2} with a second gradient"), std::string::npos) << alone;
}

}  // namespace batch_norm_test
}  // namespace gpubench::testing
