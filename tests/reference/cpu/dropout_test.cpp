// Dropout on the CPU, against the textbook, whose mask is exact.
#include <gtest/gtest.h>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/pointwise_contract.h"

namespace gpubench {
namespace dropout_test {

using testing::cpu_contract;
using testing::ProgramRun;

TEST(Dropout, EveryLayoutAndTypeIsWithinItsBound) {
  testing::expect_bounds_in_every_type(cpu_contract(), testing::dropout_programs);
}

// Large enough to be streamed, on several threads.
TEST(Dropout, ALargeTensorHasTheSameMask) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::bf16, {8192, 4100}, Role::activation));
  const ValueId seed = program.add(tensor("seed", DType::i32, {2}, Role::scalar));
  const ValueId offset = program.add(tensor("offset", DType::i32, {2}, Role::scalar));
  dropout(program, {0.1}, {}, "dropout", x, {seed, offset});
  ProgramRun run(testing::shared_backend(), program);
  run.set(x, std::vector<double>(8192 * 4100, 1.0));
  run.set(seed, std::vector<double>{1, 2});
  run.set(offset, std::vector<double>{3, 4});

  EXPECT_EQ(testing::run_and_judge(run, 97), "");
}

}  // namespace dropout_test
}  // namespace gpubench
