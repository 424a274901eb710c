#include "suites/variants/variants.h"

#include <gtest/gtest.h>

#include <set>

namespace gpubench::variants {
namespace pairwise_test {

bool any_row(const Row&) { return true; }

std::set<FactorPair> pairs_in(const std::vector<Row>& rows) {
  std::set<FactorPair> pairs;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = i + 1; j < row.size(); ++j) pairs.insert({i, row[i], j, row[j]});
    }
  }
  return pairs;
}

// 2 x 3 + 2 x 2 + 3 x 2 pairs.
TEST(Pairwise, EveryPairOfValuesOccurs) {
  const Covering covering = cover_pairs(std::vector<std::size_t>{2, 3, 2}, any_row);
  EXPECT_EQ(pairs_in(covering.rows).size(), 16U);
  EXPECT_TRUE(covering.refused.empty());
  EXPECT_EQ(covering.rows.front(), Row({0, 0, 0}));
}

// Two factors of 4 and 3 values need 12 rows; all values of ten such factors would be more than a million.
TEST(Pairwise, FewRowsAreEnoughForManyFactors) {
  const std::vector<std::size_t> sizes{4, 3, 3, 3, 2, 2, 2, 2, 2, 2};
  const Covering covering = cover_pairs(sizes, any_row);
  std::size_t pairs = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    for (std::size_t j = i + 1; j < sizes.size(); ++j) pairs += sizes[i] * sizes[j];
  }
  EXPECT_EQ(pairs_in(covering.rows).size(), pairs);
  EXPECT_LE(covering.rows.size(), 20U);
}

TEST(Pairwise, APairInNoAcceptedRowIsRefusedAndNoOther) {
  const auto accepts = [](const Row& row) { return row[0] != 1 || row[2] != 1; };
  const Covering covering = cover_pairs(std::vector<std::size_t>{2, 2, 2}, accepts);
  EXPECT_EQ(covering.refused, (std::vector<FactorPair>{{0, 1, 2, 1}}));
  EXPECT_EQ(pairs_in(covering.rows).size(), 11U);
  for (const Row& row : covering.rows) EXPECT_TRUE(accepts(row));
}

// A value that needs another: the second factor's value 1 makes sense with the first's value 1 alone.
TEST(Pairwise, DependentValueIsPairedWithAllOthers) {
  const auto accepts = [](const Row& row) { return row[1] == 0 || row[0] == 1; };
  const Covering covering = cover_pairs(std::vector<std::size_t>{2, 2, 3}, accepts);
  EXPECT_EQ(covering.refused, (std::vector<FactorPair>{{0, 0, 1, 1}}));
  EXPECT_TRUE(pairs_in(covering.rows).contains({1, 1, 2, 2}));
}

// The last two factors' values 1 make sense only where both of the first two have value 1.
TEST(Pairwise, TwoOtherFactorsMayHaveToChange) {
  const auto accepts = [](const Row& row) { return (row[2] == 0 && row[3] == 0) || (row[0] == 1 && row[1] == 1); };
  const Covering covering = cover_pairs(std::vector<std::size_t>{2, 2, 2, 2}, accepts);
  EXPECT_TRUE(pairs_in(covering.rows).contains({2, 1, 3, 1}));
  EXPECT_EQ(covering.refused, (std::vector<FactorPair>{{0, 0, 2, 1}, {0, 0, 3, 1}, {1, 0, 2, 1}, {1, 0, 3, 1}}));
}

TEST(Pairwise, OneFactorHasARowForEachValue) {
  EXPECT_EQ(cover_pairs(std::vector<std::size_t>{3}, any_row).rows, (std::vector<Row>{{0}, {1}, {2}}));
}

TEST(Pairwise, WithoutFactorsThereIsOneRow) {
  const Covering covering = cover_pairs({}, any_row);
  EXPECT_EQ(covering.rows, (std::vector<Row>{{}}));
}

}  // namespace pairwise_test
}  // namespace gpubench::variants
