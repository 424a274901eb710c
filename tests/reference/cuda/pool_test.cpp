// Pooling on the CUDA backend's kernels, against the textbook.
#include <gtest/gtest.h>

#include "tests/reference/cuda/emulated_backend.h"
#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/pool_programs.h"

namespace gpubench {
namespace cuda_pool_test {

TEST(CudaPool, EveryWindowAndTypeIsWithinItsBound) {
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const testing::PoolProgram& p : testing::pool_programs(dtype)) {
      EXPECT_EQ(testing::run_in_every_order(p.program, [&](testing::ProgramRun& run) { fill(run, p); }), "") << p.what;
    }
  }
}

}  // namespace cuda_pool_test
}  // namespace gpubench
