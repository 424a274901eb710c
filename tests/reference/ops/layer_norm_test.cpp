#include "reference/ops/norm.h"

#include <gtest/gtest.h>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace layer_norm_test {

struct Example {
  Program program;
  ValueId x, gamma, beta;
  LayerNormForward forward;

  Example(DType type, DType parameters, std::int64_t rows, std::int64_t n, double epsilon = 1e-5) {
    const Math math = type == DType::f64 ? f64_math : f32_math;
    x = source(program, "x", type, {rows, n});
    gamma = source(program, "gamma", parameters, {n}, Role::parameter);
    beta = source(program, "beta", parameters, {n}, Role::parameter);
    forward = layer_norm_forward(program, {epsilon}, math, "ln", x, gamma, beta);
  }
};

// Rows like those of norm fills: deviations 1, 10 sqrt(eps), sqrt(eps), 0 for eps = 1e-5; then again around a mean.
std::vector<double> norm_rows(std::int64_t rows, std::int64_t n) {
  std::vector<double> values = spread(rows * n, 5);
  const double deviations[4] = {1.0, 0.03125, 0.00390625, 0.0};
  for (std::int64_t row = 0; row < rows; ++row) {
    const double deviation = deviations[row % 4];
    const double mean =
        row / 4 % 2 == 0 ? (deviation == 0.0 ? 0.5 : 0.0) : 2.0 * deviation + (deviation == 0.0 ? 1.0 : 0.0);
    for (std::int64_t j = 0; j < n; ++j) values[row * n + j] = values[row * n + j] * deviation * 1.75 + mean;
  }
  return values;
}

// Faults of single-precision code with serial sums and two passes.
struct Faults {
  bool epsilon_outside = false;  // 1 / (sqrt(variance) + epsilon)
  bool unbiased = false;
  bool without_beta = false;
  float mean_extra = 0.0F;          // mean over n + mean_extra
  float rstd_factor = 1.0F;         // in y only: a fast reciprocal square root
  bool without_projection = false;  // backward: without sum(h xhat)
};

struct FloatRow {
  std::vector<float> y;
  float mean = 0.0F, rstd = 0.0F;
};

FloatRow forward_in_float(const double* x, const std::vector<double>& gamma, const std::vector<double>& beta,
                          float epsilon, const Faults& faults = {}) {
  const std::size_t n = gamma.size();
  FloatRow row;
  for (std::size_t j = 0; j < n; ++j) row.mean += static_cast<float>(x[j]);
  row.mean /= static_cast<float>(n) + faults.mean_extra;
  float variance = 0.0F;
  for (std::size_t j = 0; j < n; ++j) {
    const float deviation = static_cast<float>(x[j]) - row.mean;
    variance += deviation * deviation;
  }
  variance /= static_cast<float>(n) - (faults.unbiased ? 1.0F : 0.0F);
  row.rstd = faults.epsilon_outside ? 1.0F / (std::sqrt(variance) + epsilon) : 1.0F / std::sqrt(variance + epsilon);
  for (std::size_t j = 0; j < n; ++j) {
    const float normalized = (static_cast<float>(x[j]) - row.mean) * (row.rstd * faults.rstd_factor);
    row.y.push_back(normalized * static_cast<float>(gamma[j]) +
                    (faults.without_beta ? 0.0F : static_cast<float>(beta[j])));
  }
  return row;
}

struct Rejected {
  int y = 0, mean = 0, rstd = 0, rows = 0;
};

Rejected judge_float(DType type, std::int64_t n, const Faults& faults) {
  constexpr std::int64_t rows = 16;
  Example s(type, DType::f32, rows, n);
  TextbookRun run(s.program);
  run.set(s.x, norm_rows(rows, n));
  run.set(s.gamma, spread(n, 6));
  run.set(s.beta, spread(n, 7));
  const std::vector<double> x = run.get(s.x), gamma = run.get(s.gamma), beta = run.get(s.beta);
  const auto y = run.judge(0, 0), mean = run.judge(0, 1), rstd = run.judge(0, 2);
  Rejected rejected;
  for (std::int64_t row = 0; row < rows; ++row) {
    const FloatRow got = forward_in_float(x.data() + row * n, gamma, beta, 1e-5F, faults);
    bool bad = false;
    for (std::int64_t j = 0; j < n; ++j) {
      const bool in = within(y[row * n + j], type, round_to(type, got.y[j]));
      rejected.y += in ? 0 : 1;
      bad = bad || !in;
    }
    rejected.rows += bad ? 1 : 0;
    rejected.mean += within(mean[row], DType::f32, got.mean) ? 0 : 1;
    rejected.rstd += within(rstd[row], DType::f32, got.rstd) ? 0 : 1;
  }
  return rejected;
}

TEST(LayerNorm, ARowWorkedOutByHand) {
  // x = (1, 3): mean 2, variance 1; epsilon 3 gives rstd = 1/2, so y = gamma (-1/2, 1/2) + beta.
  Example s(DType::f64, DType::f64, 1, 2, 3.0);
  TextbookRun run(s.program);
  run.set(s.x, {1, 3});
  run.set(s.gamma, {2, 10});
  run.set(s.beta, {0.5, -1});

  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{-0.5, 4}));
  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{2}));
  EXPECT_EQ(values_of(run.judge(0, 2)), (std::vector<double>{0.5}));
}

TEST(LayerNorm, GradientsOfARowWorkedOutByHand) {
  // xhat = (-1/2, 1/2), rstd 1/2, dy = (1, 0), gamma = 1: sum(h) = 1, sum(h xhat) = -1/2,
  // dx = 1/2 (h - 1/2 + xhat / 4) = 1/2 (1 - 1/2 - 1/8, -1/2 + 1/8) = (3/16, -3/16).
  Program p;
  const ValueId dy = source(p, "dy", DType::f64, {1, 2}), x = source(p, "x", DType::f64, {1, 2});
  const ValueId gamma = source(p, "gamma", DType::f64, {2});
  const ValueId mean = source(p, "mean", DType::f64, {1}), rstd = source(p, "rstd", DType::f64, {1});
  layer_norm_backward(p, {3.0}, f64_math, "back", dy, x, gamma, mean, rstd);
  TextbookRun run(p);
  run.set(dy, {1, 0});
  run.set(x, {1, 3});
  run.set(gamma, {1, 1});
  run.set(mean, {2});
  run.set(rstd, {0.5});

  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{0.1875, -0.1875}));
  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{-0.5, 0}));
  EXPECT_EQ(values_of(run.judge(0, 2)), (std::vector<double>{1, 0}));
}

TEST(LayerNorm, BackwardTakesTheSavedStatisticsAsTheyAre) {
  // With a saved mean of 0 and rstd of 1, xhat = x = (1, 3): dgamma = dy xhat = (2, 3).
  Program p;
  const ValueId dy = source(p, "dy", DType::f64, {1, 2}), x = source(p, "x", DType::f64, {1, 2});
  const ValueId gamma = source(p, "gamma", DType::f64, {2});
  const ValueId mean = source(p, "mean", DType::f64, {1}), rstd = source(p, "rstd", DType::f64, {1});
  layer_norm_backward(p, {}, f64_math, "back", dy, x, gamma, mean, rstd);
  TextbookRun run(p);
  run.set(dy, {2, 1});
  run.set(x, {1, 3});
  run.set(gamma, {1, 1});
  run.set(mean, {0});
  run.set(rstd, {1});

  EXPECT_EQ(values_of(run.judge(0, 1)), (std::vector<double>{2, 3}));
}

TEST(LayerNorm, GradientsAgreeWithCentralDifferences) {
  Example s(DType::f64, DType::f64, 3, 7);
  expect_derivative_agrees(s.program, s.forward.y,
                           {{s.x, spread(21, 1)}, {s.gamma, spread(7, 2)}, {s.beta, spread(7, 3)}},
                           {s.x, s.gamma, s.beta});
}

TEST(LayerNorm, AGradientIntoAStatisticIsAnError) {
  Example s(DType::f64, DType::f64, 3, 7);
  const std::string message = refused_gradient(s.program, s.forward.rstd);

  EXPECT_NE(message.find("statistic of op 'ln'"), std::string::npos) << message;
}

TEST(LayerNorm, CorrectSinglePrecisionIsAccepted) {
  for (const DType type : {DType::f32, DType::bf16}) {
    for (const std::int64_t n : {1, 5, 768}) {
      const Rejected rejected = judge_float(type, n, {});
      EXPECT_EQ(rejected.y + rejected.mean + rejected.rstd, 0) << name(type) << " n = " << n;
    }
  }
}

TEST(LayerNorm, EpsilonOutsideTheSquareRootIsRejectedInRowsOfLowVariance) {
  const Rejected rejected = judge_float(DType::bf16, 768, {.epsilon_outside = true});

  EXPECT_GE(rejected.rows, 8);   // variances 100 eps and eps, visible even in bf16
  EXPECT_GE(rejected.rstd, 12);  // and the saved rstd of rows without variance
}

TEST(LayerNorm, AVarianceOverNMinusOneIsRejectedByRstd) {
  // Relative error of rstd 1/(2n) = 6.5e-4: all rows but the four without variance.
  EXPECT_EQ(judge_float(DType::bf16, 768, {.unbiased = true}).rstd, 12);
}

TEST(LayerNorm, AMeanOverNPlusOneIsRejected) {
  // Rows around a mean (2 deviations): half of them, and the constant ones of the other half.
  EXPECT_GE(judge_float(DType::f32, 768, {.mean_extra = 1.0F}).mean, 8);
}

TEST(LayerNorm, AReciprocalRootOfTwelveGoodBitsIsRejected) {
  EXPECT_GE(judge_float(DType::f32, 768, {.rstd_factor = 1.0F + 0x1p-13F}).rows, 12);
}

TEST(LayerNorm, AForgottenBetaIsRejected) { EXPECT_EQ(judge_float(DType::bf16, 768, {.without_beta = true}).rows, 16); }

struct Backward {
  Program program;
  ValueId dy, x, gamma, mean, rstd;
  explicit Backward(DType type, std::int64_t rows, std::int64_t n) {
    dy = source(program, "dy", type, {rows, n});
    x = source(program, "x", type, {rows, n});
    gamma = source(program, "gamma", DType::f32, {n});
    mean = source(program, "mean", DType::f32, {rows});
    rstd = source(program, "rstd", DType::f32, {rows});
    layer_norm_backward(program, {}, f32_math, "back", dy, x, gamma, mean, rstd);
  }
  void fill(TextbookRun& run, std::int64_t rows, std::int64_t n) const {
    run.set(dy, spread(rows * n, 11));
    run.set(x, norm_rows(rows, n));
    run.set(gamma, spread(n, 12));
    const std::vector<double> data = run.get(x), ones(n, 1.0), zeros(n, 0.0);
    std::vector<double> means, rstds;
    for (std::int64_t row = 0; row < rows; ++row) {
      const FloatRow statistics = forward_in_float(data.data() + row * n, ones, zeros, 1e-5F);
      means.push_back(statistics.mean);
      rstds.push_back(statistics.rstd);
    }
    run.set(mean, means);
    run.set(rstd, rstds);
  }
};

std::array<int, 3> judge_float_backward(DType type, const Faults& faults) {
  constexpr std::int64_t rows = 48, n = 768;
  Backward s(type, rows, n);
  TextbookRun run(s.program);
  s.fill(run, rows, n);
  const auto dy = run.get(s.dy), x = run.get(s.x), gamma = run.get(s.gamma), mean = run.get(s.mean),
             rstd = run.get(s.rstd);
  const auto want_dx = run.judge(0, 0), want_dgamma = run.judge(0, 1), want_dbeta = run.judge(0, 2);
  std::vector<float> dgamma(n, 0.0F), dbeta(n, 0.0F);
  std::array<int, 3> rejected{};
  for (std::int64_t row = 0; row < rows; ++row) {
    float sum = 0.0F, weighted = 0.0F;
    std::vector<float> h(n), xhat(n);
    for (std::int64_t j = 0; j < n; ++j) {
      const float d = static_cast<float>(dy[row * n + j]);
      xhat[j] = (static_cast<float>(x[row * n + j]) - static_cast<float>(mean[row])) * static_cast<float>(rstd[row]);
      h[j] = d * static_cast<float>(gamma[j]);
      sum += h[j];
      weighted += h[j] * xhat[j];
      dgamma[j] += d * xhat[j];
      dbeta[j] += d;
    }
    if (faults.without_projection) weighted = 0.0F;
    for (std::int64_t j = 0; j < n; ++j) {
      const float dx = static_cast<float>(rstd[row]) * (h[j] - (sum + xhat[j] * weighted) / static_cast<float>(n));
      rejected[0] += within(want_dx[row * n + j], type, round_to(type, dx)) ? 0 : 1;
    }
  }
  for (std::int64_t j = 0; j < n; ++j) {
    rejected[1] += within(want_dgamma[j], DType::f32, dgamma[j]) ? 0 : 1;
    rejected[2] += within(want_dbeta[j], DType::f32, dbeta[j]) ? 0 : 1;
  }
  return rejected;
}

TEST(LayerNorm, CorrectSinglePrecisionGradientsAreAccepted) {
  for (const DType type : {DType::f32, DType::bf16})
    EXPECT_EQ(judge_float_backward(type, {}), (std::array<int, 3>{0, 0, 0})) << name(type);
}

TEST(LayerNorm, AGradientWithoutItsProjectionIsRejected) {
  EXPECT_GT(judge_float_backward(DType::f32, {.without_projection = true})[0], 1000);
}

TEST(LayerNorm, SubsetsAgreeWithTheWhole) {
  Example s(DType::f32, DType::f32, 13, 5);
  TextbookRun run(s.program);
  run.set(s.x, norm_rows(13, 5));
  run.set(s.gamma, spread(5, 6));
  run.set(s.beta, spread(5, 7));
  for (const int output : {0, 1, 2}) expect_subsets_agree(run, 0, output);

  Backward b(DType::f32, 13, 5);
  TextbookRun backward(b.program);
  b.fill(backward, 13, 5);
  for (const int output : {0, 1, 2}) expect_subsets_agree(backward, 0, output);
}

TEST(LayerNorm, CostCountsDataOnceAndEightOrFourteenFlopPerElement) {
  Example s(DType::bf16, DType::f32, 100, 64);
  const Cost forward = cost_of(s.program, s.program.op(0));
  EXPECT_EQ(forward.flop, 8.0 * 6400);
  EXPECT_EQ(forward.bytes, 2.0 * 6400 * 2 + 2 * 64 * 4 + 2 * 100 * 4);  // x, y; gamma, beta; mean, rstd

  Backward b(DType::bf16, 100, 64);
  const Cost backward = cost_of(b.program, b.program.op(0));
  EXPECT_EQ(backward.flop, 14.0 * 6400);
  EXPECT_EQ(backward.bytes, 3.0 * 6400 * 2 + 3 * 64 * 4 + 2 * 100 * 4);
}

TEST(LayerNorm, OutputsHaveTheTypesThatTheHeaderPromises) {
  Example s(DType::bf16, DType::f32, 4, 8);

  EXPECT_EQ(s.program.spec(s.forward.y).to_string(), "ln.y: bf16[4, 8]");
  EXPECT_EQ(s.program.spec(s.forward.mean).to_string(), "ln.mean: f32[4]");
  EXPECT_EQ(s.program.spec(s.forward.rstd).to_string(), "ln.rstd: f32[4]");
}

TEST(LayerNorm, AParameterOfAnotherLengthIsAnErrorNamingIt) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4, 8}), gamma = source(p, "gamma", DType::f32, {8}),
                beta = source(p, "beta", DType::f32, {4});

  EXPECT_EQ(program_error([&] { layer_norm_forward(p, {}, f32_math, "ln", x, gamma, beta); }),
            "layer_norm_forward: tensor 'beta' has shape [4]; expected [8]");
}

}  // namespace layer_norm_test
}  // namespace gpubench::testing
