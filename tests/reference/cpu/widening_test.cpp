// Ops on types that their implementation lacks, by f32 copies.
#include "reference/cpu/kernel.h"

#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/cpu/program_run.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace widening_test {

using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

/// y = x + x, planned.
ProgramRun sum_in(DType type) {
  Program program;
  const ValueId x = program.add(tensor("x", type, {300}, Role::activation));
  (void)add(program, Math{}, "y", x, x);
  ProgramRun run(shared_backend(), program);
  run.set_random(x, 1);
  return run;
}

TEST(Widening, IsNamedBehindTheImplementationAndOnlyWhereItIsNeeded) {
  ProgramRun narrow = sum_in(DType::f16), wide = sum_in(DType::f32);
  narrow.run();
  wide.run();
  EXPECT_EQ(narrow.implementation(0), wide.implementation(0) + "+widen");
  EXPECT_TRUE(narrow.canaries_intact());
}

TEST(Widening, IsPlannedAgainByItsName) {
  Program program;
  const ValueId a = program.add(tensor("a", DType::f16, {16, 16}, Role::activation));
  (void)gemm(program, {}, Math{}, "c", a, a);
  const auto pinned_to = [&](const std::string& name) {
    ProgramRun run(shared_backend(), program);
    run.pin(name);
    run.run();
    return run.implementation(0);
  };
  ProgramRun chosen(shared_backend(), program);
  chosen.run();
  EXPECT_EQ(pinned_to(chosen.implementation(0)), chosen.implementation(0));
  for (const char* other : {"onednn:nothing+widen", "onednn:nothing"})
    EXPECT_NE(testing::refusal(shared_backend(), program, other), "") << other;
}

TEST(Widening, OfATypeThatIsNotNarrowRefusesTheName) {
  ProgramRun run = sum_in(DType::f32);
  run.pin("gpubench:avx2+widen");
  EXPECT_THROW(run.run(), Unsupported);
}

// A stored sum from which the op computes the rest; large and small addends, so that rounding it matters.
template <class Build>
std::string judged_sum(const Build& build) {
  Program program;
  const ValueId large = program.add(tensor("large", DType::f16, {48, 40}, Role::activation));
  const ValueId small = program.add(tensor("small", DType::f16, {48, 40}, Role::activation));
  const std::vector<ValueId> others = build(program, large, small);
  ProgramRun run(shared_backend(), program);
  run.set_random(large, 1, 300.0);
  run.set_random(small, 2, 0.3);
  for (std::size_t i = 0; i < others.size(); ++i) run.set_random(others[i], 3 + i);
  return run_and_judge(run);
}

TEST(Widening, ResidualNormReadsItsSumAsItIsStored) {
  const auto build = [](Program& program, ValueId x, ValueId r) {
    const auto parameter = [&](const char* name) {
      return program.add(tensor(name, DType::f32, {40}, Role::parameter));
    };
    const ValueId gamma = parameter("gamma"), beta = parameter("beta");
    (void)residual_norm_forward(program, LayerNorm{}, Math{}, "norm", x, r, gamma, beta);
    return std::vector{gamma, beta};
  };
  EXPECT_EQ(judged_sum(build), "");
}

TEST(Widening, BatchNormReluGradientReadsItsSumAsItIsStored) {
  const auto build = [](Program& program, ValueId dy, ValueId dy2) {
    const auto of_channels = [&](const char* name) {
      return program.add(tensor(name, DType::f32, {40}, Role::statistic));
    };
    const ValueId x = program.add(tensor("x", DType::f16, {48, 40}, Role::activation));
    const ValueId y = program.add(tensor("y", DType::f16, {48, 40}, Role::activation));
    const ValueId gamma = of_channels("gamma"), mean = of_channels("mean"), rstd = of_channels("rstd");
    (void)batch_norm_relu_backward(program, {.dy2 = true, .dr = true}, Math{}, "norm", {x, gamma, mean, rstd, y}, dy,
                                   dy2);
    return std::vector{x, y, gamma, mean, rstd};
  };
  EXPECT_EQ(judged_sum(build), "");
}

}  // namespace widening_test
}  // namespace gpubench
