#include <gtest/gtest.h>

#include "tests/reference/cpu/textbook_judge.h"
#include "tests/reference/reductions_contract.h"

namespace gpubench {
namespace reductions_test {

using testing::cpu_contract;

TEST(ColumnSum, OddShapesLieWithinTheirBounds) {
  for (const int threads : {1, 3})
    testing::expect_bounds_of_column_sums(cpu_contract(threads),
                                          {{1, 1}, {7, 1}, {3, 7}, {1023, 65}, {4099, 768}, {6, 20001}});
}

TEST(ColumnSum, OfSharesReadsAndWritesPartsOfWiderRows) {
  testing::expect_bounds_of_sums_of_shares(cpu_contract(), {{1, 9, 5}, {7, 128, 64}, {300, 3, 17}, {2, 1001, 33}});
}

TEST(ColumnSum, OneSignedColumnsAndNarrowResultsLieWithinTheirBounds) {
  testing::expect_bounds_of_one_signed_columns(cpu_contract(), 30011);
}

TEST(ColumnSum, ReadsAPartOfWiderRows) { testing::expect_bounds_of_column_sums_of_a_part(cpu_contract()); }

TEST(EmbeddingForward, CopiesRowsBitForBit) { testing::expect_rows_of_tokens_bit_for_bit(cpu_contract()); }

TEST(EmbeddingForward, ATokenOutsideTheTableGivesNaN) {
  testing::expect_nan_of_tokens_outside_the_table(cpu_contract());
}

TEST(Embedding, OfTheRowsOfARankLooksUpAndSumsTheirTokens) {
  testing::expect_bounds_of_the_rows_of_a_rank(cpu_contract(), false);
}

TEST(EmbeddingBackward, SumsRareAndFrequentTokensWithinBoundsAndLeavesOtherRowsZero) {
  for (const int threads : {1, 3})
    testing::expect_bounds_of_rare_and_frequent_tokens(cpu_contract(threads), {1, 61, 128, 301}, false);
}

TEST(EmbeddingBackward, TokensOutsideTheTableCountNowhere) {
  testing::expect_no_gradient_of_tokens_outside_the_table(cpu_contract());
}

}  // namespace reductions_test
}  // namespace gpubench
