// The error budget of the checks, and the breakdown of training steps.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "harness/page/sections.h"
#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpParity op(const std::string& kind, double error, std::int64_t judged = 10) {
  OpParity parity;
  parity.label = kind + "0";
  parity.kind = kind;
  parity.phase = "recheck";
  parity.verdict = error <= 1.0 ? Verdict::pass : Verdict::fail;
  parity.error_over_bound = error;
  parity.judged = judged;
  parity.elements = 40;
  return parity;
}

CaseRecord checked(const std::string& recipe, std::vector<OpParity> ops, std::int64_t n) {
  CaseRecord record = made_case("matmul", {{"n", n}}, recipe);
  record.parity.ops = std::move(ops);
  return record;
}

const chart::HeatMap& map_of(const Figure& figure) { return std::get<chart::HeatMap>(figure.chart); }

TEST(ErrorBudget, ACellIsTheLargestErrorOfItsKindAndPrecision) {
  const Figure figure = figures_of(section_of(made_report({checked("f32", {op("gemm", 0.25), op("softmax", 0.0)}, 1),
                                                           checked("f32", {op("gemm", 0.5)}, 2),
                                                           checked("bf16", {op("gemm", 0.125)}, 3)}),
                                              "error-budget"))
                            .front();
  EXPECT_THAT(map_of(figure).columns, ElementsAre("f32", "bf16"));
  EXPECT_THAT(map_of(figure).rows, ElementsAre("gemm", "softmax"));
  EXPECT_EQ(map_of(figure).cells[0][0].text, "0.50");
  EXPECT_DOUBLE_EQ(map_of(figure).cells[0][0].shade, 0.5);
  EXPECT_FALSE(map_of(figure).cells[0][0].marked);
  EXPECT_EQ(map_of(figure).cells[0][1].text, "0.12");
  EXPECT_EQ(map_of(figure).cells[1][0].text, "0");
  EXPECT_EQ(map_of(figure).cells[1][1].text, "");  // no softmax in bf16
  EXPECT_THAT(column_of(figure.table, "elements judged"), ElementsAre("20", "10", "10"));
  EXPECT_THAT(column_of(figure.table, "worst in"),
              ElementsAre("gemm/matmul/n=2/f32/x1", "gemm/matmul/n=3/bf16/x1", "gemm/matmul/n=1/f32/x1"));
}

TEST(ErrorBudget, OfABriefReportIsThatOfTheFullOne) {
  const CaseRecord full = checked("f32", {op("gemm", 0.25), op("norm", 0.5), op("gemm", 0.125), op("norm", 0.25)}, 1);
  const CaseRecord brief_one = brief(full);
  ASSERT_EQ(brief_one.parity.ops.size(), 1U);  // all are of one phase
  const auto figure_of = [](const CaseRecord& record) {
    return figures_of(section_of(made_report({record}), "error-budget")).front();
  };
  EXPECT_EQ(figure_of(brief_one).table.rows, figure_of(full).table.rows);
  EXPECT_THAT(column_of(figure_of(brief_one).table, "checks"), ElementsAre("2", "2"));
  EXPECT_THAT(map_of(figure_of(brief_one)).cells[1][0].note, HasSubstr("0.25 of its bound, gemm recheck in"));
}

// The one chart that failing cases are in: it is about them.
TEST(ErrorBudget, AboveOneIsMarkedAndFirst) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Figure figure = figures_of(section_of(made_report({checked("f32", {op("adamw", 0.9), op("gemm", 3.5)}, 1),
                                                           checked("f32", {op("clip", nan)}, 2)}),
                                              "error-budget"))
                            .front();
  EXPECT_THAT(map_of(figure).rows, ElementsAre("clip", "gemm", "adamw"));
  EXPECT_TRUE(map_of(figure).cells[0][0].marked);
  EXPECT_EQ(map_of(figure).cells[0][0].text, "inf");
  EXPECT_TRUE(map_of(figure).cells[1][0].marked);
  EXPECT_EQ(map_of(figure).cells[1][0].text, "3.50");
  EXPECT_FALSE(map_of(figure).cells[2][0].marked);
}

TEST(ErrorBudget, WhatWasNotJudgedUsedNoBudget) {
  EXPECT_TRUE(section_of(made_report({checked("f32", {op("gemm", 0.0, 0)}, 1)}), "error-budget").empty());
}

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
  const Section section = section_of(made_report({step(0.25)}), "breakdown");
  ASSERT_EQ(figures_of(section).size(), 1U);  // each op is a layer of its own: there are none
  const Figure figure = figures_of(section).front();
  const chart::StackedBar& bar = std::get<chart::StackChart>(figure.chart).bars.at(0);
  ASSERT_EQ(bar.parts.size(), 3U);
  EXPECT_EQ(bar.parts[0].name, "gemm");
  EXPECT_DOUBLE_EQ(bar.parts[0].value, 0.5);
  EXPECT_EQ(bar.parts[1].name, "norm");
  EXPECT_EQ(bar.parts[2].name, "left over");
  EXPECT_DOUBLE_EQ(bar.parts[2].value, 0.25);
  EXPECT_THAT(column_of(figure.table, "op"), ElementsAre("gemm", "norm", "left over (gaps between launches)"));
  EXPECT_THAT(column_of(figure.table, "ops"), ElementsAre("2", "1", ""));
  EXPECT_THAT(column_of(figure.table, "alone"), ElementsAre("500 us", "250 us", "250 us"));
  EXPECT_THAT(column_of(figure.table, "of the step"), ElementsAre("50.0%", "25.0%", "+25.0%"));
  EXPECT_THAT(column_of(figure.table, "largest"), ElementsAre("qkv", "ln", ""));
}

TEST(StepBreakdown, ANegativeRemainderIsToldAndNoPart) {
  const Figure figure = figures_of(section_of(made_report({step(-0.125)}), "breakdown")).front();
  const chart::StackedBar& bar = std::get<chart::StackChart>(figure.chart).bars.at(0);
  EXPECT_EQ(bar.parts.size(), 2U);
  EXPECT_THAT(bar.label, HasSubstr("left over -12.5%"));
  EXPECT_THAT(column_of(figure.table, "of the step"), Contains("-12.5%"));
}

// As on the console (share_is_sure()): with a step of +-20% the parts, 100% of it, may be off by
// 20% x sqrt(2) = 28 points, more than 25; with +-10% by 14.
TEST(StepBreakdown, ARemainderIsUnknownFromWhereItIsOnTheConsole) {
  CaseRecord record = step(0.0);
  const auto remainder = [&] {
    return column_of(figures_of(section_of(made_report({record}), "breakdown")).front().table, "of the step").back();
  };
  EXPECT_EQ(remainder(), "+0.0%");
  record.summary.ci95_low_ns = 0.8e6;
  record.summary.ci95_high_ns = 1.2e6;
  EXPECT_EQ(remainder(), "unknown");
}

// "left over -1806%" is no number to show; nor is that of a step whose own time may be off by half.
TEST(StepBreakdown, ARemainderWithoutMeaningIsUnknown) {
  CaseRecord unsure = step(0.25);
  unsure.summary.ci95_high_ns = 2e6;
  for (const CaseRecord& record : {step(-18.06), unsure}) {
    const Figure figure = figures_of(section_of(made_report({record}), "breakdown")).front();
    const chart::StackedBar& bar = std::get<chart::StackChart>(figure.chart).bars.at(0);
    EXPECT_EQ(bar.parts.size(), 2U);
    EXPECT_EQ(column_of(figure.table, "of the step").back(), "unknown");
    EXPECT_EQ(column_of(figure.table, "alone").back(), "unknown");
  }
  EXPECT_THAT(std::get<chart::StackChart>(figures_of(section_of(made_report({unsure}), "breakdown")).front().chart)
                  .bars.at(0)
                  .label,
              HasSubstr("~1.00 ms, unreliable"));
}

// Ops alone that take 18 times the step, with +-10% of it: 12 and 6 of 18 are drawn, and no share of the step is said.
TEST(StepBreakdown, OpsThatTakeFarMoreThanTheStepAreSharesOfTheirSum) {
  CaseRecord record = step(-17.0);
  record.derived.breakdown = {{"qkv", "gemm", "lib", 12e6, 12.0, 1, 1}, {"ln", "norm", "own", 6e6, 6.0, 1, 1}};
  record.summary.ci95_low_ns = 0.9e6;
  record.summary.ci95_high_ns = 1.1e6;
  const Figure figure = figures_of(section_of(made_report({record}), "breakdown")).front();
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
  const Figure figure = figures_of(section_of(made_report({record}), "breakdown")).front();
  EXPECT_THAT(std::get<chart::StackChart>(figure.chart).bars.at(0).label, HasSubstr("MFU 25.0%"));
  EXPECT_EQ(column_of(figure.table, "of the step").back(), "25.0%");
  EXPECT_EQ(column_of(figure.table, "largest").back(), "bf16's peak: a data sheet");
}

// Layers of the largest step of each precision: of two steps in bf16 the one with more FLOP.
TEST(StepBreakdown, LayersAreBarsInTheOrderOfTheStep) {
  CaseRecord large = step(0.25);
  large.derived.breakdown = {{"block0.qkv", "gemm", "lib", 3e5, 0.3, 6e5, 1},
                             {"loss", "loss", "own", 1e5, 0.1, 1, 1},
                             {"block0.qkv.db", "gemm", "lib", 2e5, 0.2, 4e5, 1}};
  large.derived.flop = 1e15;
  large.c.dims = {{"b", 16}};
  const Section section = section_of(made_report({step(0.25), large}), "breakdown");
  ASSERT_EQ(figures_of(section).size(), 2U);
  const Figure figure = figures_of(section)[1];
  const chart::BarChart& chart = std::get<chart::BarChart>(figure.chart);
  ASSERT_EQ(chart.groups.size(), 1U);
  ASSERT_EQ(chart.groups[0].bars.size(), 2U);
  EXPECT_EQ(chart.groups[0].bars[0].label, "block0");
  EXPECT_DOUBLE_EQ(chart.groups[0].bars[0].value, 5e5);
  EXPECT_EQ(chart.groups[0].bars[0].text, "500 us, 50.0%");
  EXPECT_THAT(column_of(figure.table, "layer"), ElementsAre("block0", "loss"));
  EXPECT_THAT(column_of(figure.table, "rate"), ElementsAre("2.00 GFLOP/s", "10.0 kFLOP/s"));  // 1 MFLOP in 500 us
}

// 60% of a step of +-50%: off by 60 x 50% x sqrt(2), 42 points.
TEST(StepBreakdown, ALayersShareOfAnUncertainStepIsUnknown) {
  CaseRecord unsure = step(0.0);
  unsure.derived.breakdown = {{"block0.up", "gemm", "lib", 3e5, 0.3, 1, 1},
                              {"block0.down", "gemm", "lib", 3e5, 0.3, 1, 1}};
  unsure.summary.ci95_low_ns = 0.5e6;
  unsure.summary.ci95_high_ns = 1.5e6;
  const Figure figure = figures_of(section_of(made_report({unsure}), "breakdown"))[1];
  EXPECT_THAT(column_of(figure.table, "of the step"), ElementsAre("unknown"));
}

TEST(StepBreakdown, LayersBeyondTheChartAreOneBar) {
  CaseRecord deep = step(0.0);
  deep.derived.breakdown.clear();
  for (int i = 0; i < 60; ++i)
    deep.derived.breakdown.push_back(
        {"block" + std::to_string(i / 2) + ".mlp" + std::to_string(i % 2), "gemm", "lib", 5e3, 0.005, 1, 1});
  const Figure figure = figures_of(section_of(made_report({deep}), "breakdown"))[1];
  const std::vector<chart::Bar>& bars = std::get<chart::BarChart>(figure.chart).groups.at(0).bars;
  ASSERT_EQ(bars.size(), 25U);
  EXPECT_EQ(bars.back().label, "6 more layers");
  EXPECT_DOUBLE_EQ(bars.back().value, 6e4);
  EXPECT_EQ(figure.table.rows.size(), 30U);
}

TEST(StepBreakdown, MemoryIsDividedByKind) {
  CaseRecord record = step(0.25);
  record.memory = {{"weights", 1000000}, {"optimizer state", 3000000}};
  const Section section = section_of(made_report({record}), "breakdown");
  ASSERT_EQ(figures_of(section).size(), 2U);
  const Figure figure = figures_of(section)[1];
  const chart::StackedBar& bar = std::get<chart::StackChart>(figure.chart).bars.at(0);
  ASSERT_EQ(bar.parts.size(), 2U);
  EXPECT_EQ(bar.parts[1].name, "optimizer state");
  EXPECT_DOUBLE_EQ(bar.parts[1].value, 0.75);
  EXPECT_THAT(column_of(figure.table, "bytes"), ElementsAre("1.00 MB", "3.00 MB"));
}

TEST(StepBreakdown, StepsThatFailedAndSingleOpsHaveNone) {
  EXPECT_TRUE(
      section_of(made_report({with_verdict(step(0.25), Verdict::fail, "wrong"), made_gemm(4)}), "breakdown").empty());
}

}  // namespace
}  // namespace gpubench::page
