#include <gtest/gtest.h>

#include "tests/reference/cuda/emulated_judge.h"
#include "tests/reference/reductions_contract.h"

namespace gpubench {
namespace cross_entropy_test {

using testing::emulated_contract;

// Warps handle up to 1024 classes; odd rows start unaligned.
TEST(CudaCrossEntropy, OddShapesInPlaceOrNotLieWithinTheirBoundsBothWays) {
  testing::expect_bounds_of_cross_entropy(
      emulated_contract(), false, {{1, 1}, {3, 7}, {9, 1000}, {5, 1023}, {3, 5001}, {2, 16384, 11}}, {0.5, 30.0});
}

// Blocks hold up to 24576 classes of 16 bits, or half as many of 32; longer rows are read twice.
TEST(CudaCrossEntropyForwardBackward, OddShapesInPlaceOrNotLieWithinTheirBounds) {
  testing::expect_bounds_of_cross_entropy(
      emulated_contract(), true, {{1, 1}, {3, 7}, {9, 1000}, {5, 1023}, {3, 5001}, {2, 16384}, {2, 16391}, {2, 33001}},
      {3.0, 30.0});
}

TEST(CudaCrossEntropy, PartsOfRowsLieWithinTheirBounds) {
  testing::expect_bounds_of_cross_entropy_of_parts(emulated_contract());
}

TEST(CudaCrossEntropyForwardBackward, LabelsAtTheEndsOfOddRowsLieWithinTheirBounds) {
  testing::expect_bounds_of_labels_at_the_ends(emulated_contract());
}

TEST(CudaCrossEntropy, MaskedClassesGetNoGradientAndLargeLogitsDoNotOverflow) {
  testing::expect_masked_and_large_logits_to_be_exact(emulated_contract());
}

TEST(CudaCrossEntropy, NaNAndLabelsOutsideTheClassesSpoilTheirRowsAndTheLoss) {
  testing::expect_nan_and_wrong_labels_to_spoil_their_rows(emulated_contract());
}

TEST(CudaCrossEntropyTerms, EveryTermOfTheLossLiesWithinItsBoundBothWays) {
  testing::expect_bounds_of_every_term(emulated_contract(), {{3, 7}, {9, 1000}, {4, 5001}});
}

TEST(CudaCrossEntropyTerms, WhereEveryRowIsIgnoredTheLossIsNaNAndNothingHasAGradient) {
  testing::expect_nothing_of_ignored_rows(emulated_contract());
}

TEST(CudaCountLabels, CountsThoseThatDo) { testing::expect_labels_to_be_counted(emulated_contract()); }

// Rows too long for a block are read twice.
TEST(CudaCrossEntropyTerms, LongRowsLieWithinTheirBounds) {
  for (const testing::CrossEntropyProgram& p : testing::cross_entropy_programs(DType::bf16, 2, 33001)) {
    if (!p.what.starts_with("both")) continue;
    EXPECT_EQ(emulated_contract().judge(p.program, [&](testing::ProgramRun& run) { fill(run, p); }), "") << p.what;
  }
}

}  // namespace cross_entropy_test
}  // namespace gpubench
