#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/page/sections.h"
#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Ops alone: 300 us and 200 us of gemm, 250 us of norm, of a step of 1 ms; 250 us are left.
CaseRecord step(double remainder) {
  CaseRecord record = made_case("train", {{"b", 8}}, "bf16", "transformer");
  record = with_rate(std::move(record), 1e9, 1e6, "tokens/s", 100);
  record.derived.breakdown = {{"qkv", "gemm", "lib", 3e5, 0.3, 1, 1},
                              {"ln", "norm", "own", 2.5e5, 0.25, 1, 1},
                              {"mlp", "gemm", "lib", 2e5, 0.2, 1, 1}};
  record.derived.remainder = remainder;
  return record;
}

TEST(StepBreakdown, KindsOfOpsAreSharesOfTheStep) {
  const SectionPart part = part_of(made_report({step(0.25)}), "breakdown");
  ASSERT_EQ(part.figures.size(), 1U);  // no figure of layers: each op is a layer
  const Figure figure = part.figures.front();
  const chart::StackedBar& bar = std::get<chart::StackChart>(figure.chart).bars.at(0);
  ASSERT_EQ(bar.parts.size(), 3U);
  EXPECT_EQ(bar.parts[0].name, "gemm");
  EXPECT_DOUBLE_EQ(bar.parts[0].value, 0.5);
  EXPECT_EQ(bar.parts[1].name, "norm");
  EXPECT_EQ(bar.parts[2].name, "left over");
  EXPECT_DOUBLE_EQ(bar.parts[2].value, 0.25);
  EXPECT_THAT(column_of(figure.table, "by"), ElementsAre("op", "op", "left over"));
  EXPECT_THAT(column_of(figure.table, "part"), ElementsAre("gemm", "norm", "gaps between launches"));
  EXPECT_THAT(column_of(figure.table, "ops"), ElementsAre("2", "1", ""));
  EXPECT_THAT(column_of(figure.table, "alone"), ElementsAre("500 us", "250 us", "250 us"));
  EXPECT_THAT(column_of(figure.table, "of the step"), ElementsAre("50.0%", "25.0%", "+25.0%"));
  EXPECT_THAT(column_of(figure.table, "largest"), ElementsAre("qkv", "ln", ""));
}

TEST(StepBreakdown, ANegativeRemainderIsToldAndNoPart) {
  const Figure figure = part_of(made_report({step(-0.125)}), "breakdown").figures.front();
  const chart::StackedBar& bar = std::get<chart::StackChart>(figure.chart).bars.at(0);
  EXPECT_EQ(bar.parts.size(), 2U);
  EXPECT_THAT(bar.label, HasSubstr("left over -12.5%"));
  EXPECT_THAT(column_of(figure.table, "of the step"), Contains("-12.5%"));
}

// As on the console (share_is_reliable()): with a step of +-20% the parts, 100% of it, may be off by 20% x sqrt(2) = 28
// points, more than 25; with +-10% by 14.
TEST(StepBreakdown, ARemainderIsUnknownFromWhereItIsOnTheConsole) {
  CaseRecord record = step(0.0);
  const auto remainder = [&] {
    return column_of(part_of(made_report({record}), "breakdown").figures.front().table, "of the step").back();
  };
  EXPECT_EQ(remainder(), "+0.0%");
  record.summary.ci95_low_ns = 0.8e6;
  record.summary.ci95_high_ns = 1.2e6;
  EXPECT_EQ(remainder(), "unknown");
}

// A remainder of -1806%, and one of a step whose time may be off by half.
TEST(StepBreakdown, ARemainderWithoutMeaningIsUnknown) {
  CaseRecord unsure = step(0.25);
  unsure.summary.ci95_high_ns = 2e6;
  for (const CaseRecord& record : {step(-18.06), unsure}) {
    const Figure figure = part_of(made_report({record}), "breakdown").figures.front();
    const chart::StackedBar& bar = std::get<chart::StackChart>(figure.chart).bars.at(0);
    EXPECT_EQ(bar.parts.size(), 2U);
    EXPECT_EQ(column_of(figure.table, "of the step").back(), "unknown");
    EXPECT_EQ(column_of(figure.table, "alone").back(), "unknown");
  }
  EXPECT_THAT(
      std::get<chart::StackChart>(part_of(made_report({unsure}), "breakdown").figures.front().chart).bars.at(0).label,
      HasSubstr("~1.00 ms, unreliable"));
}

// Ops alone that take 18 times the step, with +-10%: parts of 12 and 6 of 18, and no shares of the step.
TEST(StepBreakdown, OpsThatTakeFarMoreThanTheStepAreSharesOfTheirSum) {
  CaseRecord record = step(-17.0);
  record.derived.breakdown = {{"qkv", "gemm", "lib", 12e6, 12.0, 1, 1}, {"ln", "norm", "own", 6e6, 6.0, 1, 1}};
  record.summary.ci95_low_ns = 0.9e6;
  record.summary.ci95_high_ns = 1.1e6;
  const Figure figure = part_of(made_report({record}), "breakdown").figures.front();
  const chart::StackedBar& bar = std::get<chart::StackChart>(figure.chart).bars.at(0);
  ASSERT_EQ(bar.parts.size(), 2U);
  EXPECT_DOUBLE_EQ(bar.parts[0].value, 12.0 / 18.0);
  EXPECT_DOUBLE_EQ(bar.parts[1].value, 6.0 / 18.0);
  EXPECT_THAT(bar.label, HasSubstr("shares of the ops' sum"));
  EXPECT_THAT(column_of(figure.table, "of the step"), ElementsAre("unknown", "unknown", "unknown"));
}

TEST(StepBreakdown, ModelFlopUtilizationNamesThePeak) {
  CaseRecord record = step(0.25);  // 1 GFLOP/s
  record.derived.flop_per_s = 1e9;
  record.derived.peak.emplace();
  record.derived.peak->limit = "bf16";
  record.derived.peak->peak = 4e9;
  record.derived.peak->peak_source = "a data sheet";
  const Figure figure = part_of(made_report({record}), "breakdown").figures.front();
  EXPECT_THAT(std::get<chart::StackChart>(figure.chart).bars.at(0).label, HasSubstr("MFU 25.0%"));
  EXPECT_EQ(column_of(figure.table, "of the step").back(), "25.0%");
  EXPECT_EQ(column_of(figure.table, "largest").back(), "bf16's peak: a data sheet");
}

// Draws the step in bf16 with more FLOP; its layers follow its ops.
TEST(StepBreakdown, TheLargestStepIsDrawnAndToldByLayerToo) {
  CaseRecord large = step(0.25);
  large.derived.breakdown = {{"block0.qkv", "gemm", "lib", 3e5, 0.3, 6e5, 1},
                             {"loss", "loss", "own", 1e5, 0.1, 1, 1},
                             {"block0.qkv.db", "gemm", "lib", 2e5, 0.2, 4e5, 1}};
  large.derived.flop = 1e15;
  large.c.dims = {{"b", 16}};
  const SectionPart part = part_of(made_report({step(0.25), large}), "breakdown");
  ASSERT_EQ(part.figures.size(), 1U);
  const DataTable& table = part.figures.front().table;
  const auto& bars = std::get<chart::StackChart>(part.figures.front().chart).bars;
  ASSERT_EQ(bars.size(), 1U);
  EXPECT_THAT(bars.front().label, HasSubstr("train b=16, bf16: 1.00 ms"));
  EXPECT_THAT(column_of(table, "by"), ElementsAre("op", "op", "left over", "op", "op", "left over", "layer", "layer"));
  EXPECT_THAT(column_of(table, "part"), ElementsAre("gemm", "norm", "gaps between launches", "gemm", "loss",
                                                    "gaps between launches", "block0", "loss"));
  EXPECT_EQ(table.rows[6][5], "50.0%");
  EXPECT_EQ(table.rows[6][8], "2.00 GFLOP/s");  // 1 MFLOP in 500 us
}

// 60% of a step of +-50%: off by 60 x 50% x sqrt(2), 42 points.
TEST(StepBreakdown, ALayersShareOfAnUncertainStepIsUnknown) {
  CaseRecord unsure = step(0.0);
  unsure.derived.breakdown = {{"block0.up", "gemm", "lib", 3e5, 0.3, 1, 1},
                              {"block0.down", "norm", "lib", 3e5, 0.3, 1, 1}};
  unsure.summary.ci95_low_ns = 0.5e6;
  unsure.summary.ci95_high_ns = 1.5e6;
  const Figure figure = part_of(made_report({unsure}), "breakdown").figures.front();
  EXPECT_EQ(figure.table.rows.back()[1], "layer");
  EXPECT_EQ(figure.table.rows.back()[5], "unknown");
}

TEST(StepBreakdown, OfManyProgramsTheFirstAreDrawnAndAllAreInTheTable) {
  std::vector<CaseRecord> steps(20, step(0.25));
  for (std::size_t i = 0; i < steps.size(); ++i) {
    steps[i].c.workload = "train" + std::to_string(i);
    steps[i].id = steps[i].c.id();
  }
  const Figure figure = part_of(made_report(steps), "breakdown").figures.front();
  EXPECT_EQ(std::get<chart::StackChart>(figure.chart).bars.size(), 16U);
  EXPECT_EQ(std::get<chart::StackChart>(figure.chart).title, "transformer: 16 of 20");
  EXPECT_EQ(figure.table.rows.size(), 60U);
}

TEST(StepBreakdown, MemoryIsDividedByKind) {
  CaseRecord record = step(0.25);
  record.memory = {{"weights", 1000000}, {"optimizer state", 3000000}};
  const SectionPart part = part_of(made_report({record}), "breakdown", "Memory");
  ASSERT_EQ(part.figures.size(), 1U);
  const Figure& figure = part.figures.front();
  const chart::StackedBar& bar = std::get<chart::StackChart>(figure.chart).bars.at(0);
  ASSERT_EQ(bar.parts.size(), 2U);
  EXPECT_EQ(bar.parts[1].name, "optimizer state");
  EXPECT_DOUBLE_EQ(bar.parts[1].value, 0.75);
  EXPECT_THAT(column_of(figure.table, "bytes"), ElementsAre("1.00 MB", "3.00 MB"));
}

TEST(StepBreakdown, StepsThatFailedAndSingleOpsHaveNone) {
  EXPECT_TRUE(
      part_of(made_report({with_verdict(step(0.25), Verdict::fail, "wrong"), made_gemm(4)}), "breakdown").empty());
}

}  // namespace
}  // namespace gpubench::page
