// Layer normalization on the CPU, against the textbook: rows that are constant, nearly so, or far from zero; odd
// widths.
#include "reference/ops/norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "reference/cpu/cpu_backend.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace norm_test {

using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

/// Rows whose mean, over standard deviation, and standard deviation are the hard ones: variance 1, 100 epsilon,
/// epsilon, 0; mean 0, 1 and 16 deviations.
std::vector<double> hard_rows(std::int64_t rows, std::int64_t n, const std::vector<double>& normal) {
  constexpr double deviations[] = {1.0, 0.0316, 0.00316, 0.0};
  constexpr double means[] = {0.0, 1.0, 16.0};
  std::vector<double> values(normal);
  for (std::int64_t row = 0; row < rows; ++row) {
    const double deviation = deviations[row % 4];
    const double mean = means[row % 3] * (deviation > 0.0 ? deviation : 0.7);
    for (std::int64_t i = 0; i < n; ++i) {
      double& value = values[static_cast<std::size_t>(row * n + i)];
      value = mean + deviation * value;
    }
  }
  return values;
}

struct Experiment {
  Program program;
  ValueId x, gamma, beta;
  LayerNormForward out;
};

Experiment forward_experiment(DType dtype, DType parameter_dtype, std::int64_t rows, std::int64_t n) {
  Experiment e;
  e.x = e.program.add(tensor("x", dtype, Shape{rows, n}, Role::activation));
  e.gamma = e.program.add(tensor("gamma", parameter_dtype, Shape{n}, Role::parameter));
  e.beta = e.program.add(tensor("beta", parameter_dtype, Shape{n}, Role::parameter));
  e.out = layer_norm_forward(e.program, LayerNorm{}, Math{}, "op", e.x, e.gamma, e.beta);
  return e;
}

const std::vector<std::tuple<DType, DType>> type_pairs = {
    {DType::f32, DType::f32}, {DType::bf16, DType::f32}, {DType::bf16, DType::bf16}, {DType::f16, DType::f32}};

TEST(LayerNormForward, HardRowsOfOddWidthsLieWithinTheirBounds) {
  for (const auto& [dtype, parameter_dtype] : type_pairs) {
    for (const auto& [rows, n] : {std::pair{1, 1}, {5, 7}, {24, 255}, {24, 768}, {25, 1023}, {12, 5000}}) {
      Experiment e = forward_experiment(dtype, parameter_dtype, rows, n);
      ProgramRun run(shared_backend(), e.program);
      run.set_random(e.x, 1);
      run.set(e.x, hard_rows(rows, n, run.get(e.x)));
      run.set_random(e.gamma, 2);
      run.set_random(e.beta, 3);

      EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << rows << " x " << n;
    }
  }
}

// A constant row has variance 0: rstd = 1 / sqrt(1e-5) = 316.2278, y = beta.
TEST(LayerNormForward, AConstantRowGivesBeta) {
  Experiment e = forward_experiment(DType::f32, DType::f32, 2, 768);
  ProgramRun run(shared_backend(), e.program);
  run.set(e.x, std::vector<double>(2 * 768, 0.5));
  run.set_random(e.gamma, 2);
  run.set_random(e.beta, 3);

  run.run();

  const std::vector<double> y = run.get(e.out.y);
  const std::vector<double> beta = run.get(e.beta);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(y[i], beta[i % 768]);
  EXPECT_NEAR(run.get(e.out.rstd)[1], 316.227766, 1e-4);
  EXPECT_EQ(run.get(e.out.mean)[1], 0.5);
}

TEST(LayerNormForward, NaNSpreadsToItsRowOnly) {
  Experiment e = forward_experiment(DType::bf16, DType::f32, 3, 500);
  ProgramRun run(shared_backend(), e.program);
  run.set_random(e.x, 1);
  std::vector<double> x = run.get(e.x);
  x[700] = std::nan("");
  run.set(e.x, x);
  run.set_random(e.gamma, 2);
  run.set_random(e.beta, 3);

  run.run();

  const std::vector<double> y = run.get(e.out.y);
  for (std::size_t i = 0; i < y.size(); ++i) ASSERT_EQ(std::isnan(y[i]), i / 500 == 1) << i;
}

TEST(LayerNormForward, LargeOutputsLieWithinTheirBounds) {
  Experiment e = forward_experiment(DType::f32, DType::f32, 7001, 750);
  ProgramRun run(shared_backend(), e.program);
  run.set_random(e.x, 1);
  run.set_random(e.gamma, 2);
  run.set_random(e.beta, 3);

  EXPECT_EQ(run_and_judge(run, 53), "");
}

TEST(LayerNormBackward, HardRowsOfOddWidthsLieWithinTheirBounds) {
  for (const auto& [dtype, parameter_dtype] : type_pairs) {
    for (const auto& [rows, n] : {std::pair{1, 1}, {5, 7}, {24, 255}, {300, 768}, {25, 1023}, {12, 5000}}) {
      // Statistics as the forward leaves them.
      Experiment e = forward_experiment(dtype, parameter_dtype, rows, n);
      ProgramRun forward(shared_backend(), e.program);
      forward.set_random(e.x, 1);
      forward.set(e.x, hard_rows(rows, n, forward.get(e.x)));
      forward.set_random(e.gamma, 2);
      forward.set_random(e.beta, 3);
      forward.run();

      Program program;
      const ValueId dy = program.add(tensor("dy", dtype, Shape{rows, n}, Role::gradient));
      const ValueId x = program.add(tensor("x", dtype, Shape{rows, n}, Role::activation));
      const ValueId gamma = program.add(tensor("gamma", parameter_dtype, Shape{n}, Role::parameter));
      const ValueId mean = program.add(tensor("mean", DType::f32, Shape{rows}, Role::statistic));
      const ValueId rstd = program.add(tensor("rstd", DType::f32, Shape{rows}, Role::statistic));
      (void)layer_norm_backward(program, LayerNorm{}, Math{}, "op", dy, x, gamma, mean, rstd);
      for (const int threads : {1, 3}) {
        const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
        ProgramRun run(*backend, program);
        run.set_random(dy, 4);
        run.set(x, forward.get(e.x));
        run.set(gamma, forward.get(e.gamma));
        run.set(mean, forward.get(e.out.mean));
        run.set(rstd, forward.get(e.out.rstd));

        EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << rows << " x " << n << ", threads " << threads;
      }
    }
  }
}

TEST(RmsNorm, HardRowsOfOddWidthsLieWithinTheirBoundsBothWays) {
  for (const auto& [dtype, parameter_dtype] : type_pairs) {
    for (const auto& [rows, n] : {std::pair{1, 1}, {5, 7}, {24, 255}, {300, 768}, {25, 1023}, {12, 5000}}) {
      Program program;
      const ValueId dy = program.add(tensor("dy", dtype, Shape{rows, n}, Role::gradient));
      const ValueId x = program.add(tensor("x", dtype, Shape{rows, n}, Role::activation));
      const ValueId gamma = program.add(tensor("gamma", parameter_dtype, Shape{n}, Role::parameter));
      const RmsNormForward out = rms_norm_forward(program, {}, Math{}, "forward", x, gamma);
      (void)rms_norm_backward(program, {}, Math{}, "backward", dy, x, gamma, out.rstd);
      for (const int threads : {1, 3}) {
        const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
        ProgramRun run(*backend, program);
        run.set_random(x, 1);
        run.set(x, hard_rows(rows, n, run.get(x)));
        run.set_random(gamma, 2);
        run.set_random(dy, 4);

        EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << rows << " x " << n << ", threads " << threads;
      }
    }
  }
}

TEST(RmsNorm, LargeOutputsLieWithinTheirBounds) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, Shape{7001, 750}, Role::activation));
  const ValueId gamma = program.add(tensor("gamma", DType::f32, Shape{750}, Role::parameter));
  (void)rms_norm_forward(program, {}, Math{}, "forward", x, gamma);
  ProgramRun run(shared_backend(), program);
  run.set_random(x, 1);
  run.set_random(gamma, 2);

  EXPECT_EQ(run_and_judge(run, 53), "");
}

}  // namespace norm_test
}  // namespace gpubench
