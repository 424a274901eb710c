#include "harness/page/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CaseRecord taking(std::int64_t n, double ns) {
  CaseRecord record = made_gemm(n);
  for (RoundRecord& round : record.rounds) round.times.device_ns.assign(4, 2.0 * ns);
  record.derived.headline *= 1e6 / ns;
  return record;
}

const chart::ForestChart& forest(const Figure& figure) { return std::get<chart::ForestChart>(figure.chart); }

// Times 1 ms and 1 ms against 0.25 ms and 2 ms: speeds 4 and 1/2; the geometric mean is sqrt(2).
TEST(ComparisonForest, TheSecondReportIsHeldAgainstTheFirst) {
  const std::vector<Report> reports{made_report({taking(100, 1e6), taking(200, 1e6)}),
                                    made_report({taking(100, 0.25e6), taking(200, 2e6)})};
  const SectionPart part = part_of(reports, "comparison");
  ASSERT_EQ(part.figures.size(), 1U);
  const Figure figure = part.figures.front();
  const std::vector<chart::ForestRow>& rows = forest(figure).rows;
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_TRUE(rows[0].summary);
  EXPECT_NEAR(rows[0].ratio, std::sqrt(2.0), 1e-12);
  EXPECT_NEAR(rows[1].ratio, 4.0, 1e-12);
  EXPECT_EQ(rows[1].word, "FASTER");
  EXPECT_LT(rows[1].low, 4.0);
  EXPECT_GT(rows[1].high, 4.0);
  EXPECT_NEAR(rows[2].ratio, 0.5, 1e-12);
  EXPECT_EQ(rows[2].word, "SLOWER");
  EXPECT_THAT(column_of(figure.table, "B/A"), ElementsAre("4.000x", "0.500x"));
  EXPECT_THAT(column_of(figure.table, "verdict"), ElementsAre("FASTER", "SLOWER"));
  EXPECT_THAT(part.lead, HasSubstr("noise from run to run is assumed"));
}

TEST(ComparisonForest, OfManyCasesTheMostDifferentAreDrawnAndAllAreInTheTable) {
  std::vector<CaseRecord> a, b;
  for (std::int64_t i = 1; i <= 60; ++i) {
    a.push_back(taking(i, 1e6));
    b.push_back(taking(i, 1e6 * (1.0 + 0.01 * static_cast<double>(i))));
  }
  const Figure figure = part_of({made_report(a), made_report(b)}, "comparison").figures.front();
  EXPECT_EQ(forest(figure).rows.size(), 17U);
  EXPECT_EQ(figure.table.rows.size(), 60U);
  EXPECT_EQ(forest(figure).rows[1].label, "matmul/m=60,n=60,k=60/f32");
}

TEST(ComparisonForest, CasesThatFailedOnOneSideAreNotCompared) {
  const std::vector<Report> reports{
      made_report({taking(100, 1e6), taking(200, 1e6)}),
      made_report({taking(100, 0.5e6), with_verdict(taking(200, 2e6), Verdict::fail, "wrong")})};
  EXPECT_EQ(part_of(reports, "comparison").figures.front().table.rows.size(), 1U);
}

TEST(ComparisonForest, NothingInCommonIsSaid) {
  const SectionPart part = part_of({made_report({taking(100, 1e6)}), made_report({taking(200, 1e6)})}, "comparison");
  EXPECT_TRUE(part.figures.empty());
  EXPECT_THAT(part.notice, HasSubstr("No case passed in both"));
}

TEST(ComparisonForest, AReportThatCannotBeComparedSaysWhy) {
  CaseRecord without_samples = taking(100, 1e6);
  without_samples.rounds.clear();
  const SectionPart part = part_of({made_report({taking(100, 1e6)}), made_report({without_samples})}, "comparison");
  EXPECT_THAT(part.notice, HasSubstr("cannot be compared: report B:gpubench.cases[0].rounds: hold no sample"));
}

// gemm as above; a conv only in A; and a gemm that fails in B.
TEST(Ratios, ASuiteIsARowWithItsMeanGainsLossesAndWhatItLeavesOut) {
  const std::vector<Report> reports{
      made_report({taking(100, 1e6), taking(200, 1e6), taking(300, 1e6),
                   with_rate(made_case("conv2d_forward", {{"n", 1}}, "f32", "conv"), 1e6, 1e6)}),
      made_report({taking(100, 0.25e6), taking(200, 2e6), with_verdict(taking(300, 1e6), Verdict::fail, "wrong")})};
  const std::vector<Side> sides = sides_of(reports);
  const Comparisons comparisons = comparisons_of(sides);
  ASSERT_EQ(comparisons.pairs.size(), 1U);
  const DataTable table = ratio_table(comparisons.pairs[0]);
  EXPECT_THAT(column_of(table, "suite"), ElementsAre("gemm", "conv"));
  EXPECT_THAT(column_of(table, "B/A, geometric mean"), ElementsAre("1.414x", "-"));
  EXPECT_THAT(column_of(table, "cases"), ElementsAre("2", "0"));
  EXPECT_THAT(column_of(table, "faster"), ElementsAre("1", "0"));
  EXPECT_THAT(column_of(table, "slower"), ElementsAre("1", "0"));
  EXPECT_THAT(column_of(table, "left out of the mean"), ElementsAre("1 B: fail", "1 only in A"));
  const DataTable changes = changes_table(comparisons.pairs[0]);
  EXPECT_THAT(column_of(changes, "B/A"), ElementsAre("4.000x", "0.500x"));
  EXPECT_THAT(column_of(changes, ""), ElementsAre("FASTER", "SLOWER"));
}

TEST(Ratios, OfManyChangesTheLargestAreTold) {
  std::vector<CaseRecord> a, b;
  for (std::int64_t i = 1; i <= 20; ++i) {
    a.push_back(taking(i, 1e6));
    b.push_back(taking(i, i <= 10 ? 1e6 / static_cast<double>(1 + i) : 1e6 * static_cast<double>(i)));
  }
  const std::vector<Report> reports{made_report(a), made_report(b)};
  const std::vector<Side> sides = sides_of(reports);
  const DataTable changes = changes_table(comparisons_of(sides).pairs.at(0), 2);
  EXPECT_THAT(column_of(changes, "B/A"), ElementsAre("11.0x", "10.0x", "0.050x", "0.053x"));  // 1/20, 1/19
}

TEST(ComparisonForest, OneReportHasNothingToBeHeldAgainst) {
  EXPECT_TRUE(part_of(made_report({taking(100, 1e6)}), "comparison").empty());
}

}  // namespace
}  // namespace gpubench::page
