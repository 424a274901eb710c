#include <gtest/gtest.h>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/pool_contract.h"

namespace gpubench {
namespace pool_test {

TEST(Pool, EveryWindowAndTypeIsWithinItsBound) {
  testing::expect_bounds_in_every_type(testing::cpu_contract(), testing::pool_programs);
}

TEST(Pool, ANanIsTheLargestOfItsWindowsAndItsGradientFindsIt) {
  testing::expect_nan_to_be_largest(testing::cpu_contract());
}

}  // namespace pool_test
}  // namespace gpubench
