// Dropout on the CUDA backend, against the textbook and bit for bit against the CPU backend.
#include <gtest/gtest.h>

#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/pointwise_contract.h"

namespace gpubench {
namespace cuda_dropout_test {

using testing::dropout_programs;
using testing::DropoutProgram;
using testing::ProgramRun;

TEST(CudaDropout, EveryLayoutAndTypeIsWithinItsBound) {
  testing::expect_bounds_in_every_type(testing::emulated_contract(), dropout_programs);
}

TEST(CudaDropout, BothBackendsDrawTheSameMask) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const DropoutProgram& d : dropout_programs(dtype)) {
      ProgramRun cuda(testing::emulated_contract().backend, d.program), cpu(testing::shared_backend(), d.program);
      fill(cuda, d);
      fill(cpu, d);
      cuda.run();
      cpu.run();

      EXPECT_EQ(cuda.bytes_of(d.y), cpu.bytes_of(d.y)) << name(dtype) << " " << d.what;
    }
  }
}

}  // namespace cuda_dropout_test
}  // namespace gpubench
