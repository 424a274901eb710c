#include "harness/page/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const chart::BarChart& bars(const Figure& figure) { return std::get<chart::BarChart>(figure.chart); }

// 2 n^3 FLOP in 1 ms: n = 100 makes 2e6 FLOP and 2 GFLOP/s, n = 200 eight times that, n = 400 sixty-four.
TEST(ThroughputBySize, EachSizeIsAPointAtItsWorkAndItsRate) {
  const SectionPart part =
      part_of(made_report({made_gemm(400), made_gemm(100), made_gemm(200)}), "throughput", "Against size");
  ASSERT_EQ(part.figures.size(), 1U);
  const Figure figure = part.figures.front();
  ASSERT_EQ(plot(figure).series.size(), 1U);
  const std::vector<chart::Point>& points = plot(figure).series[0].points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_DOUBLE_EQ(points[0].x, 2e6);
  EXPECT_DOUBLE_EQ(points[0].y, 2e9);
  EXPECT_DOUBLE_EQ(points[2].x, 1.28e8);
  EXPECT_DOUBLE_EQ(points[2].y, 1.28e11);
  EXPECT_EQ(plot(figure).x.scale, chart::Scale::log10);
  EXPECT_EQ(plot(figure).y.scale, chart::Scale::log10);
  EXPECT_THAT(column_of(figure.table, "rate"), ElementsAre("128 GFLOP/s", "2.00 GFLOP/s", "16.0 GFLOP/s"));
  EXPECT_THAT(column_of(figure.table, "time"), ElementsAre("1.00 ms", "1.00 ms", "1.00 ms"));
  EXPECT_THAT(column_of(figure.table, "±95%"), ElementsAre("10%", "10%", "10%"));
}

// 0.9 ms to 1.1 ms around 1 ms: 2 GFLOP/s become 2 / 1.1 and 2 / 0.9.
TEST(ThroughputBySize, TheLongerTimeIsTheLowerEndOfTheRate) {
  const SectionPart part =
      part_of(made_report({made_gemm(100), made_gemm(200), made_gemm(400)}), "throughput", "Against size");
  const chart::Point point = plot(part.figures.front()).series[0].points[0];
  EXPECT_NEAR(*point.low, 2e9 / 1.1, 1.0);
  EXPECT_NEAR(*point.high, 2e9 / 0.9, 1.0);
}

TEST(ThroughputBySize, EachPrecisionIsASeries) {
  const SectionPart part = part_of(
      made_report({made_gemm(100), made_gemm(200), made_gemm(400), made_gemm(100, "bf16"), made_gemm(200, "bf16")}),
      "throughput", "Against size");
  const chart::PlotChart chart = plot(part.figures.front());
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[0].name, "f32");
  EXPECT_EQ(chart.series[1].name, "bf16");
}

// A line implies values between its points: valid if one dimension grows, but not for m, n and k together.
TEST(ThroughputBySize, ALineJoinsPointsOnlyWhereASingleDimensionGrows) {
  std::vector<CaseRecord> copies;
  for (const std::int64_t n : {1000, 2000, 4000})
    copies.push_back(
        with_rate(made_case("copy", {{"n", n}}, "f32", "memory"), 0.0, 8.0 * static_cast<double>(n), "B/s"));
  const Figure copy = part_of(made_report(copies), "throughput", "Against size").figures.front();
  EXPECT_EQ(plot(copy).series[0].mark, chart::Mark::line);
  EXPECT_EQ(plot(copy).x.unit, "B");
  EXPECT_DOUBLE_EQ(plot(copy).series[0].points[0].x, 8000.0);
  const Figure gemm =
      part_of(made_report({made_gemm(1), made_gemm(2), made_gemm(4)}), "throughput", "Against size").figures.front();
  EXPECT_EQ(plot(gemm).series[0].mark, chart::Mark::scatter);
}

CaseRecord with_peak(CaseRecord record, const std::string& limit, double rate, double peak) {
  record.derived.peak = PeakShare{limit, rate, peak, "a sheet", rate / peak, {}, {}, {}, "", ""};
  return record;
}

TEST(ThroughputBySize, ThePublishedPeakIsAGuide) {
  const SectionPart part = part_of(made_report({with_peak(made_gemm(100, "bf16"), "bf16", 2e9, 1e12),
                                                made_gemm(200, "bf16"), made_gemm(400, "bf16")}),
                                   "throughput", "Against size");
  const chart::PlotChart chart = plot(part.figures.front());
  ASSERT_EQ(chart.guides.size(), 1U);
  EXPECT_EQ(chart.guides[0].label, "bf16 peak");
  EXPECT_DOUBLE_EQ(chart.guides[0].points[0].y, 1e12);
  // The memory limit does not bound FLOP/s.
  const SectionPart memory =
      part_of(made_report({with_peak(made_gemm(100), "memory", 1e9, 3e12), made_gemm(200), made_gemm(400)}),
              "throughput", "Against size");
  EXPECT_THAT(plot(memory.figures.front()).guides, IsEmpty());
}

TEST(Throughput, WhatDidNotPassIsInNoChartAndNoTable) {
  for (const Verdict verdict : {Verdict::fail, Verdict::downgraded, Verdict::not_proven, Verdict::unverified,
                                Verdict::unsupported, Verdict::skipped, Verdict::error}) {
    const std::vector<Report> reports{made_report(
        {made_gemm(100), made_gemm(200), made_gemm(400), with_verdict(made_gemm(800), verdict, "a reason")})};
    for (const char* title : {"Best rates", "Against size", "Against batch size"}) {
      for (const Figure& figure : part_of(reports, "throughput", title).figures) {
        for (const std::vector<std::string>& row : figure.table.rows)
          EXPECT_THAT(row, ::testing::Not(::testing::Contains(HasSubstr("800")))) << name(verdict) << " in " << title;
      }
    }
    EXPECT_EQ(plot(part_of(reports, "throughput", "Against size").figures.front()).series[0].points.size(), 3U);
  }
}

TEST(Throughput, VirtualRanksSayNothingOfADevice) {
  CaseRecord record = made_gemm(800);
  record.c.modes = {"virtual"};
  EXPECT_TRUE(part_of(made_report({record}), "throughput", "Against size").empty());
}

CaseRecord rows_of(std::int64_t m, double rate, const std::string& recipe = "f32") {
  CaseRecord record = made_case("linear_forward", {{"m", m}, {"n", 64}, {"k", 32}}, recipe);
  return with_rate(std::move(record), rate / 1e3, 1000.0);
}

TEST(ThroughputByBatch, OneShapeAtSeveralBatchSizesIsALine) {
  const SectionPart part = part_of(made_report({rows_of(8, 2e9), rows_of(1, 1e9)}), "throughput", "Against batch size");
  ASSERT_EQ(part.figures.size(), 1U);
  const chart::PlotChart chart = plot(part.figures.front());
  EXPECT_EQ(chart.title, "gemm/linear_forward, n=64 k=32");
  ASSERT_EQ(chart.series.size(), 1U);
  ASSERT_EQ(chart.series[0].points.size(), 2U);
  EXPECT_DOUBLE_EQ(chart.series[0].points[0].x, 1.0);
  EXPECT_DOUBLE_EQ(chart.series[0].points[0].y, 1e9);
  EXPECT_DOUBLE_EQ(chart.series[0].points[1].x, 8.0);
  EXPECT_EQ(chart.y.scale, chart::Scale::linear);
  EXPECT_EQ(chart.y.low, 0.0);
}

TEST(ThroughputByBatch, RatesFarApartAreDrawnOnALogarithmicAxis) {
  const SectionPart part =
      part_of(made_report({rows_of(1, 1e9), rows_of(64, 5e10)}), "throughput", "Against batch size");
  EXPECT_EQ(plot(part.figures.front()).y.scale, chart::Scale::log10);
}

TEST(ThroughputByBatch, ShapesThatDifferInMoreThanTheBatchAreNotJoined) {
  EXPECT_TRUE(part_of(made_report({made_gemm(100), made_gemm(200), made_gemm(400)}), "throughput", "Against batch size")
                  .empty());
}

TEST(ThroughputByBatch, ImagesAreCountedByN) {
  std::vector<CaseRecord> cases;
  for (const std::int64_t n : {1, 4})
    cases.push_back(
        with_rate(made_case("conv2d_forward", {{"n", n}, {"h", 56}, {"w", 56}, {"c", 64}}, "f32", "conv"), 1e6, 1e3));
  const chart::PlotChart chart = plot(part_of(made_report(cases), "throughput", "Against batch size").figures.front());
  EXPECT_EQ(chart.x.title, "batch (n), images");
}

TEST(BestRates, TheFastestCaseOfEachWorkloadAndPrecisionStandsAgainstItsPeak) {
  const Report report =
      made_report({made_gemm(100), made_gemm(200), with_peak(made_gemm(400, "bf16"), "bf16", 1.28e11, 5.12e11)});
  const SectionPart part = part_of(report, "throughput", "Best rates");
  ASSERT_EQ(part.figures.size(), 1U);
  const Figure& figure = part.figures.front();
  EXPECT_EQ(bars(figure).title, "gemm, FLOP/s");
  EXPECT_EQ(bars(figure).groups.at(0).title, "matmul");
  const std::vector<chart::Bar>& of_matmul = bars(figure).groups.at(0).bars;
  ASSERT_EQ(of_matmul.size(), 2U);
  EXPECT_DOUBLE_EQ(of_matmul[0].value, 1.6e10);
  EXPECT_FALSE(of_matmul[0].limit);
  EXPECT_DOUBLE_EQ(*of_matmul[1].limit, 5.12e11);
  EXPECT_EQ(of_matmul[1].text, "128 GFLOP/s, 25.0% of peak");
  EXPECT_THAT(column_of(figure.table, "workload"), ElementsAre("matmul", "matmul"));
  EXPECT_THAT(column_of(figure.table, "rate"), ElementsAre("16.0 GFLOP/s", "128 GFLOP/s"));
}

TEST(BestRates, EachSuiteAndUnitHasAChart) {
  CaseRecord unsure = made_gemm(800);
  unsure.summary.ci95_high_ns = 2e6;
  const CaseRecord copy = with_rate(made_case("copy", {{"n", 1}}, "f32", "memory"), 0.0, 8.0, "B/s");
  const SectionPart part =
      part_of(made_report({made_gemm(100), copy, unsure, with_rate(made_case("chain", {}), 4, 32, "launches/s", 8)}),
              "throughput", "Best rates");
  std::vector<std::string> titles;
  for (const Figure& figure : part.figures) titles.push_back(bars(figure).title);
  EXPECT_THAT(titles, ElementsAre("gemm, FLOP/s", "memory, B/s", "gemm, launches/s"));
  EXPECT_THAT(column_of(part.figures[0].table, "rate"), ElementsAre("2.00 GFLOP/s"));
}

TEST(SeveralReports, EachIsASeriesOfItsOwn) {
  const std::vector<Report> reports{made_report({made_gemm(100), made_gemm(200), made_gemm(400)}),
                                    made_report({made_gemm(100), made_gemm(200), made_gemm(400)})};
  const chart::PlotChart chart = plot(part_of(reports, "throughput", "Against size").figures.front());
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[0].name, "A f32");
  EXPECT_EQ(chart.series[1].name, "B f32");
}

}  // namespace
}  // namespace gpubench::page
