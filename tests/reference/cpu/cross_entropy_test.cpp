#include <gtest/gtest.h>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/reductions_contract.h"

namespace gpubench {
namespace cross_entropy_test {

using testing::cpu_contract;

const std::vector<testing::Rows> class_sizes = {{1, 1}, {3, 7}, {33, 1023}, {5, 50257}};

TEST(CrossEntropy, OddShapesInPlaceOrNotLieWithinTheirBoundsBothWays) {
  testing::expect_bounds_of_cross_entropy(cpu_contract(), false, class_sizes, {0.5, 3.0, 30.0});
}

TEST(CrossEntropyForwardBackward, OddShapesInPlaceOrNotLieWithinTheirBounds) {
  for (const int threads : {1, 3})
    testing::expect_bounds_of_cross_entropy(cpu_contract(threads), true, class_sizes, {0.5, 3.0, 30.0});
}

TEST(CrossEntropy, PartsOfRowsLieWithinTheirBounds) {
  testing::expect_bounds_of_cross_entropy_of_parts(cpu_contract());
}

TEST(CrossEntropyForwardBackward, LabelsAtTheEndsOfOddRowsLieWithinTheirBounds) {
  testing::expect_bounds_of_labels_at_the_ends(cpu_contract());
}

TEST(CrossEntropy, MaskedClassesGetNoGradientAndLargeLogitsDoNotOverflow) {
  testing::expect_masked_and_large_logits_to_be_exact(cpu_contract());
}

TEST(CrossEntropy, NaNAndLabelsOutsideTheClassesSpoilTheirRowsAndTheLoss) {
  testing::expect_nan_and_wrong_labels_to_spoil_their_rows(cpu_contract());
}

TEST(CrossEntropyTerms, EveryTermOfTheLossLiesWithinItsBoundBothWays) {
  testing::expect_bounds_of_every_term(cpu_contract(), {{3, 7}, {33, 1023}, {5, 5001}});
}

TEST(CrossEntropyTerms, WhereEveryRowIsIgnoredTheLossIsNaNAndNothingHasAGradient) {
  testing::expect_nothing_of_ignored_rows(cpu_contract());
}

TEST(CountLabels, CountsThoseThatDo) { testing::expect_labels_to_be_counted(cpu_contract()); }

// Gradients larger than half of the caches are streamed.
TEST(CrossEntropyForwardBackward, LargeGradientsLieWithinTheirBounds) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const testing::LossProgram p({true, false}, dtype, 211, 50257);
    const auto fill = [&](testing::ProgramRun& run) {
      run.set_random(p.logits, 1, 3.0);
      run.set(p.labels, testing::indices(211, 50257, 2));
    };
    EXPECT_EQ(cpu_contract().judge(p.program, fill, 53), "") << name(dtype);
  }
}

}  // namespace cross_entropy_test
}  // namespace gpubench
