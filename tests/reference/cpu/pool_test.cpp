// Pooling on the CPU, against the textbook.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/pool_programs.h"

namespace gpubench {
namespace pool_test {

using testing::pool_programs;
using testing::PoolProgram;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

TEST(Pool, EveryWindowAndTypeIsWithinItsBound) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const PoolProgram& p : pool_programs(dtype)) {
      ProgramRun run(shared_backend(), p.program);
      fill(run, p);
      EXPECT_EQ(run_and_judge(run), "") << p.what;
    }
  }
}

TEST(Pool, ANanIsTheLargestOfItsWindowsAndItsGradientFindsIt) {
  Program program;
  const ValueId x = program.add(tensor("x", DType::f32, {1, 4, 4, 1}, Role::input));
  const MaxPoolForward out =
      max_pool_forward(program, {.window_h = 2, .window_w = 2, .stride_h = 2, .stride_w = 2}, {}, "pool", x);
  ProgramRun run(shared_backend(), program);
  std::vector<double> values(16, 1.0);
  values[5] = std::numeric_limits<double>::quiet_NaN();  // row 1, column 1: the last of the first window
  run.set(x, values);
  EXPECT_EQ(run_and_judge(run), "");
  EXPECT_TRUE(std::isnan(run.get(out.y)[0]));
  EXPECT_EQ(run.get(out.index), (std::vector<double>{3, 0, 0, 0}));
}

}  // namespace pool_test
}  // namespace gpubench
