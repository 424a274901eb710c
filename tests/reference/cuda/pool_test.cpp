#include <gtest/gtest.h>

#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/pool_contract.h"

namespace gpubench {
namespace pool_test {

TEST(CudaPool, EveryWindowAndTypeIsWithinItsBound) {
  testing::expect_bounds_in_every_type(testing::emulated_contract(), testing::pool_programs);
}

TEST(CudaPool, ANanIsTheLargestOfItsWindowsAndItsGradientFindsIt) {
  testing::expect_nan_to_be_largest(testing::emulated_contract());
}

}  // namespace pool_test
}  // namespace gpubench
