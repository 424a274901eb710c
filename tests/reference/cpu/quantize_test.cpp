// Quantization on the CPU, against the textbook: bit for bit if scales are powers of two.
#include <gtest/gtest.h>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/quantize_contract.h"

namespace gpubench {
namespace quantize_test {

using testing::cpu_contract;

TEST(Quantize, EveryTypeAndOddSizeIsRight) { testing::expect_bounds_of_quantize(cpu_contract()); }

TEST(Quantize, EveryNumberIsRoundedOnceSaturatedAndNot) {
  testing::expect_every_number_to_be_rounded_once(cpu_contract(), {1.0, 0x1p20, 300.0});
}

TEST(Quantize, BlocksOfEverySizeOfNumberAreExact) { testing::expect_blocks_to_be_exact(cpu_contract()); }

TEST(Quantize, BlocksThatBeginAtAnyElementAreRight) { testing::expect_blocks_that_begin_anywhere(cpu_contract()); }

TEST(Quantize, EveryNumberIsTheRightElementAndChoosesTheRightScale) {
  Backend& backend = testing::shared_backend();
  testing::expect_right_elements_and_scales(backend, DType::bf16, testing::every_element(DType::bf16));
  testing::expect_right_elements_and_scales(backend, DType::bf16, testing::every_largest(DType::bf16));
}

TEST(Quantize, TheScaleOfEveryHistoryIsExact) { testing::expect_scales_of_histories(cpu_contract()); }

TEST(Quantize, TheLargestMagnitudeIsFoundWhereverItIs) { testing::expect_largest_magnitude_anywhere(cpu_contract()); }

TEST(Quantize, NaNReachesItsValueAndTheLargestMagnitude) {
  testing::expect_nan_in_its_value_and_the_largest(cpu_contract());
}

}  // namespace quantize_test
}  // namespace gpubench
