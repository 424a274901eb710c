#include <gtest/gtest.h>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/expert_contract.h"

namespace gpubench {
namespace expert_ops_test {

using testing::cpu_contract;

TEST(ExpertOps, SoftmaxOfEveryShapeAndTypeIsWithinItsBound) { testing::expect_bounds_of_softmax(cpu_contract()); }

TEST(ExpertOps, RoutingOfEveryKindAndTypeIsWithinItsBound) { testing::expect_bounds_of_routing(cpu_contract()); }

TEST(ExpertOps, TokensAreGroupedAndMovedWithinTheirBounds) { testing::expect_bounds_of_token_moves(cpu_contract()); }

TEST(ExpertOps, GroupedProductsOfEveryTypeAreWithinTheirBounds) {
  testing::expect_bounds_of_grouped_products(cpu_contract());
}

TEST(ExpertOps, RowsFarBelowZeroLieWithinTheirBounds) { testing::expect_bounds_of_rows_far_below_zero(cpu_contract()); }

TEST(ExpertOps, ARowOfSoftmaxWithANanIsAllNan) { testing::expect_nan_in_its_row_of_softmax(cpu_contract()); }

TEST(ExpertOps, SizesThatMakeNoSenseTouchNoOtherMemory) {
  testing::expect_senseless_sizes_to_touch_nothing_else(cpu_contract());
}

}  // namespace expert_ops_test
}  // namespace gpubench
