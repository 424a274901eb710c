// A residual connection with its norm on the CPU, against the textbook and against the two ops that it stands for.

#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "reference/cpu/cpu_backend.h"
#include "reference/ops/norm.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace residual_norm_test {

using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

struct Experiment {
  Program program;
  ValueId x, r, gamma, beta;
  ResidualNormForward out;
};

Experiment experiment(DType dtype, DType parameters, std::int64_t rows, std::int64_t n) {
  Experiment e;
  e.x = e.program.add(tensor("x", dtype, Shape{rows, n}, Role::activation));
  e.r = e.program.add(tensor("r", dtype, Shape{rows, n}, Role::activation));
  e.gamma = e.program.add(tensor("gamma", parameters, Shape{n}, Role::parameter));
  e.beta = e.program.add(tensor("beta", parameters, Shape{n}, Role::parameter));
  e.out = residual_norm_forward(e.program, {}, Math{}, "op", e.x, e.r, e.gamma, e.beta);
  return e;
}

/// Rows of several sizes around several means; some of them cancel to a constant row.
void set_inputs(ProgramRun& run, const Experiment& e, std::int64_t n) {
  run.set_random(e.x, 1);
  run.set_random(e.r, 5);
  run.set_random(e.gamma, 2);
  run.set_random(e.beta, 3);
  std::vector<double> x = run.get(e.x);
  std::vector<double> r = run.get(e.r);
  constexpr double deviations[] = {1.0, 0.0316, 0.00316};
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(n);
    const double deviation = deviations[row % 3];
    x[i] = deviation * (x[i] + static_cast<double>(row % 5));
    r[i] = row % 4 == 3 ? -x[i] : deviation * r[i];
  }
  run.set(e.x, x);
  run.set(e.r, r);
}

const std::vector<std::tuple<DType, DType>> type_pairs = {
    {DType::f32, DType::f32}, {DType::bf16, DType::f32}, {DType::bf16, DType::bf16}, {DType::f16, DType::f32}};

TEST(ResidualNormForward, RowsOfOddWidthsLieWithinTheirBounds) {
  for (const auto& [dtype, parameters] : type_pairs) {
    for (const auto& [rows, n] : {std::pair{1, 1}, {5, 7}, {24, 255}, {24, 768}, {25, 1023}, {12, 5000}}) {
      for (const int threads : {1, 3}) {
        const std::unique_ptr<Backend> backend = open_cpu_backend(threads);
        Experiment e = experiment(dtype, parameters, rows, n);
        ProgramRun run(*backend, e.program);
        set_inputs(run, e, n);

        EXPECT_EQ(run_and_judge(run), "") << name(dtype) << ", " << rows << " x " << n << ", threads " << threads;
      }
    }
  }
}

// Outputs of more than half of the caches are stored around them.
TEST(ResidualNormForward, LargeOutputsLieWithinTheirBounds) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Experiment e = experiment(dtype, DType::f32, 7001, 750);
    ProgramRun run(shared_backend(), e.program);
    set_inputs(run, e, 750);

    EXPECT_EQ(run_and_judge(run, 53), "") << name(dtype);
  }
}

TEST(ResidualNormForward, GivesTheSumOfTheAddBitForBitAndItsNormUpToRounding) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Experiment e = experiment(dtype, DType::f32, 33, 771);
    ProgramRun fused(shared_backend(), e.program);
    set_inputs(fused, e, 771);
    fused.run();

    Program two;
    const ValueId x = two.add(tensor("x", dtype, Shape{33, 771}, Role::activation));
    const ValueId r = two.add(tensor("r", dtype, Shape{33, 771}, Role::activation));
    const ValueId gamma = two.add(tensor("gamma", DType::f32, Shape{771}, Role::parameter));
    const ValueId beta = two.add(tensor("beta", DType::f32, Shape{771}, Role::parameter));
    const ValueId sum = add(two, Math{}, "sum", x, r);
    const LayerNormForward norm = layer_norm_forward(two, {}, Math{}, "norm", sum, gamma, beta);
    ProgramRun parts(shared_backend(), two);
    parts.set(x, fused.get(e.x));
    parts.set(r, fused.get(e.r));
    parts.set(gamma, fused.get(e.gamma));
    parts.set(beta, fused.get(e.beta));
    parts.run();

    EXPECT_EQ(fused.bytes_of(e.out.sum), parts.bytes_of(sum)) << name(dtype);
    const std::vector<double> got = fused.get(e.out.rstd);
    const std::vector<double> want = parts.get(norm.rstd);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6 * want[i]) << name(dtype) << i;
  }
}

TEST(ResidualNormForward, NaNSpreadsToItsRowOnly) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Experiment e = experiment(dtype, DType::f32, 3, 500);
    ProgramRun run(shared_backend(), e.program);
    set_inputs(run, e, 500);
    std::vector<double> r = run.get(e.r);
    r[700] = std::nan("");
    run.set(e.r, r);

    run.run();

    const std::vector<double> sum = run.get(e.out.sum);
    const std::vector<double> y = run.get(e.out.y);
    for (std::size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(std::isnan(sum[i]), i == 700) << i;
      ASSERT_EQ(std::isnan(y[i]), i / 500 == 1) << i;
    }
  }
}

TEST(ResidualNormForward, GivesTheSameBitsTwice) {
  Experiment e = experiment(DType::f32, DType::f32, 65, 1000);
  ProgramRun run(shared_backend(), e.program);
  set_inputs(run, e, 1000);
  run.run();
  const std::vector<std::byte> y = run.bytes_of(e.out.y);
  const std::vector<std::byte> rstd = run.bytes_of(e.out.rstd);

  run.run_again();

  EXPECT_EQ(run.bytes_of(e.out.y), y);
  EXPECT_EQ(run.bytes_of(e.out.rstd), rstd);
}

}  // namespace residual_norm_test
}  // namespace gpubench
