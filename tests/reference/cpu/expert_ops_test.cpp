// Softmax and what mixtures of experts are made of, on the CPU, against the textbook.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/expert_programs.h"

namespace gpubench {
namespace expert_ops_test {

using testing::ExpertProgram;
using testing::ExpertPrograms;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

void expect_right(const std::vector<ExpertProgram>& programs) {
  EXPECT_FALSE(programs.empty());
  for (const ExpertProgram& p : programs) {
    ProgramRun run(shared_backend(), p.program);
    fill(run, p);
    EXPECT_EQ(run_and_judge(run), "") << p.what;
  }
}

TEST(ExpertOps, EveryShapeAndTypeIsWithinItsBound) {
  for (const DType type : {DType::f32, DType::bf16, DType::f16}) {
    expect_right(ExpertPrograms(type).softmax());
    expect_right(ExpertPrograms(type).routing());
    expect_right(ExpertPrograms(type).moves());
    for (const DType weights : {type, DType::f32}) expect_right(ExpertPrograms(type).products(weights));
  }
  expect_right(ExpertPrograms(DType::f32).groups());
}

TEST(ExpertOps, ARowOfSoftmaxWithANanIsAllNan) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, {2, 3}, Role::input));
  const ValueId y = softmax_forward(program, {}, "y", x);
  ProgramRun run(shared_backend(), program);
  run.set(x, std::vector<double>{1, std::numeric_limits<double>::quiet_NaN(), 2, 0, 0, 0});
  EXPECT_EQ(run_and_judge(run), "");
  EXPECT_TRUE(std::isnan(run.get(y)[2]));
}

// Sizes that reach beyond the rows: nothing is read or written outside of the tensors.
TEST(ExpertOps, SizesThatMakeNoSenseTouchNoOtherMemory) {
  Program program;
  const ValueId a = program.add(tensor("a", DType::f32, {4, 3}, Role::input));
  const ValueId b = program.add(tensor("b", DType::f32, {2, 3, 5}, Role::input));
  const ValueId sizes = program.add(tensor("sizes", DType::i32, {2}, Role::input));
  const ValueId c = grouped_gemm(program, {}, {}, "c", a, b, sizes);
  (void)grouped_gemm_backward_weight(program, {}, "db", a, c, sizes);
  ProgramRun run(shared_backend(), program);
  run.set_random(a, 1);
  run.set_random(b, 2);
  run.set(sizes, std::vector<double>{-3, 1000000});
  run.run();
  EXPECT_TRUE(run.canaries_intact());
}

}  // namespace expert_ops_test
}  // namespace gpubench
