// Batch normalization on the CPU, against the textbook.
#include <gtest/gtest.h>

#include "tests/reference/batch_norm_programs.h"
#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace batch_norm_test {

using testing::batch_norm_programs;
using testing::BatchNormProgram;
using testing::ProgramRun;
using testing::run_and_judge;
using testing::shared_backend;

TEST(BatchNorm, EveryShapeAndTypeIsWithinItsBound) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    for (const BatchNormProgram& p : batch_norm_programs(dtype)) {
      ProgramRun run(shared_backend(), p.program);
      fill(run, p);
      EXPECT_EQ(run_and_judge(run), "") << p.what;
    }
  }
}

}  // namespace batch_norm_test
}  // namespace gpubench
