// Quantization on the CUDA backend, against the textbook: bit for bit if scales are powers of two.
#include <gtest/gtest.h>

#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/quantize_contract.h"

namespace gpubench {
namespace quantize_test {

using testing::emulated_contract;

TEST(CudaQuantize, EveryTypeAndOddSizeIsRight) { testing::expect_bounds_of_quantize(emulated_contract()); }

TEST(CudaQuantize, EveryNumberIsRoundedOnceSaturatedAndNot) {
  testing::expect_every_number_to_be_rounded_once(emulated_contract(), {1.0});
}

TEST(CudaQuantize, BlocksOfEverySizeOfNumberAreExact) { testing::expect_blocks_to_be_exact(emulated_contract()); }

TEST(CudaQuantize, BlocksThatBeginAtAnyElementAreRight) {
  testing::expect_blocks_that_begin_anywhere(emulated_contract());
}

TEST(CudaQuantize, EveryNumberIsTheRightElementAndChoosesTheRightScale) {
  Backend& backend = emulated_contract().backend;
  testing::expect_right_elements_and_scales(backend, DType::f16, testing::every_element(DType::f16));
  testing::expect_right_elements_and_scales(backend, DType::bf16, testing::every_largest(DType::bf16));
}

TEST(CudaQuantize, TheScaleOfEveryHistoryIsExact) { testing::expect_scales_of_histories(emulated_contract()); }

TEST(CudaQuantize, TheLargestMagnitudeIsFoundWhereverItIs) {
  testing::expect_largest_magnitude_anywhere(emulated_contract());
}

TEST(CudaQuantize, TransposedValuesAndPartsOfWiderRowsAreRight) {
  for (const bool transposed : {false, true}) {
    for (const std::int64_t first : {16, 3}) {
      Program program;
      const TensorSpec spec = tensor("x", DType::bf16, Shape{70, 48}, Role::activation);
      const testing::PartOfRows x = testing::part_of_rows(program, spec, 100, first);
      const ValueId scale = program.add(tensor("scale", DType::f32, Shape{1}, Role::scalar));
      const int columns_first[] = {1, 0};
      std::optional<Layout> layout;
      if (transposed) layout = Layout::ordered(spec.shape, columns_first);
      (void)quantize(program, {}, {}, "op", x.part, scale, layout);
      const auto fill = [&](testing::ProgramRun& run) {
        run.set_random(x.whole, 3, 2.0);
        run.set(scale, std::vector<double>{8.0});
      };
      EXPECT_EQ(emulated_contract().judge(program, fill), "")
          << "transposed " << transposed << ", from column " << first;
    }
  }
}

TEST(CudaQuantize, NaNReachesItsValueAndTheLargestMagnitude) {
  testing::expect_nan_in_its_value_and_the_largest(emulated_contract());
}

}  // namespace quantize_test
}  // namespace gpubench
