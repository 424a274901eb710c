// Batch normalization on the CUDA backend's kernels, against the textbook.
#include <gtest/gtest.h>

#include "tests/reference/batch_norm_programs.h"
#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace cuda_batch_norm_test {

TEST(CudaBatchNorm, EveryShapeAndTypeIsWithinItsBound) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const testing::BatchNormProgram& p : testing::batch_norm_programs(dtype)) {
      EXPECT_EQ(testing::run_in_every_order(p.program, [&](testing::ProgramRun& run) { fill(run, p); }), "") << p.what;
    }
  }
}

}  // namespace cuda_batch_norm_test
}  // namespace gpubench
