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
  const Section section = section_of(made_report({made_gemm(400), made_gemm(100), made_gemm(200)}), "throughput");
  ASSERT_EQ(figures_of(section).size(), 1U);
  const Figure figure = figures_of(section).front();
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
  const Section section = section_of(made_report({made_gemm(100), made_gemm(200), made_gemm(400)}), "throughput");
  const chart::Point point = plot(figures_of(section).front()).series[0].points[0];
  EXPECT_NEAR(*point.low, 2e9 / 1.1, 1.0);
  EXPECT_NEAR(*point.high, 2e9 / 0.9, 1.0);
}

TEST(ThroughputBySize, EachPrecisionIsASeries) {
  const Section section = section_of(
      made_report({made_gemm(100), made_gemm(200), made_gemm(400), made_gemm(100, "bf16"), made_gemm(200, "bf16")}),
      "throughput");
  const chart::PlotChart chart = plot(figures_of(section).front());
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[0].name, "f32");
  EXPECT_EQ(chart.series[1].name, "bf16");
}

// A line between two shapes says something of what lies between them: true where one dimension grows, m n k together
// do not.
TEST(ThroughputBySize, ALineJoinsPointsOnlyWhereASingleDimensionGrows) {
  std::vector<CaseRecord> copies;
  for (const std::int64_t n : {1000, 2000, 4000})
    copies.push_back(
        with_rate(made_case("copy", {{"n", n}}, "f32", "memory"), 0.0, 8.0 * static_cast<double>(n), "B/s"));
  const Figure copy = figures_of(section_of(made_report(copies), "throughput")).front();
  EXPECT_EQ(plot(copy).series[0].mark, chart::Mark::line);
  EXPECT_EQ(plot(copy).x.unit, "B");
  EXPECT_DOUBLE_EQ(plot(copy).series[0].points[0].x, 8000.0);
  const Figure gemm =
      figures_of(section_of(made_report({made_gemm(1), made_gemm(2), made_gemm(4)}), "throughput")).front();
  EXPECT_EQ(plot(gemm).series[0].mark, chart::Mark::scatter);
}

TEST(ThroughputBySize, OneOrTwoSizesAreBarsRatherThanLonelyPoints) {
  const Figure figure = figures_of(section_of(made_report({made_gemm(100), made_gemm(200)}), "throughput")).front();
  ASSERT_EQ(bars(figure).groups.size(), 1U);
  EXPECT_EQ(bars(figure).groups[0].title, "gemm/matmul");
  ASSERT_EQ(bars(figure).groups[0].bars.size(), 2U);
  EXPECT_DOUBLE_EQ(bars(figure).groups[0].bars[1].value, 1.6e10);
  EXPECT_THAT(column_of(figure.table, "workload"), ElementsAre("gemm/matmul", "gemm/matmul"));
}

CaseRecord with_peak(CaseRecord record, const std::string& limit, double rate, double peak) {
  record.derived.peak = PeakShare{limit, rate, peak, "a sheet", rate / peak, {}, {}, {}, "", ""};
  return record;
}

TEST(ThroughputBySize, ThePublishedPeakIsAGuide) {
  const Section section = section_of(made_report({with_peak(made_gemm(100, "bf16"), "bf16", 2e9, 1e12),
                                                  made_gemm(200, "bf16"), made_gemm(400, "bf16")}),
                                     "throughput");
  const chart::PlotChart chart = plot(figures_of(section).front());
  ASSERT_EQ(chart.guides.size(), 1U);
  EXPECT_EQ(chart.guides[0].label, "bf16 peak");
  EXPECT_DOUBLE_EQ(chart.guides[0].points[0].y, 1e12);
  // The limit of memory says nothing about FLOP/s.
  const Section memory = section_of(
      made_report({with_peak(made_gemm(100), "memory", 1e9, 3e12), made_gemm(200), made_gemm(400)}), "throughput");
  EXPECT_THAT(plot(figures_of(memory).front()).guides, IsEmpty());
}

TEST(Throughput, WhatDidNotPassIsInNoChartAndNoTable) {
  for (const Verdict verdict : {Verdict::fail, Verdict::downgraded, Verdict::not_proven, Verdict::unverified,
                                Verdict::unsupported, Verdict::skipped, Verdict::error}) {
    const std::vector<Report> reports{made_report(
        {made_gemm(100), made_gemm(200), made_gemm(400), with_verdict(made_gemm(800), verdict, "a reason")})};
    for (const char* key : {"throughput", "batch", "precision"}) {
      for (const Figure& figure : figures_of(section_of(reports, key))) {
        for (const std::vector<std::string>& row : figure.table.rows)
          EXPECT_THAT(row, ::testing::Not(::testing::Contains(HasSubstr("800")))) << name(verdict) << " in " << key;
      }
    }
    EXPECT_EQ(plot(figures_of(section_of(reports, "throughput")).front()).series[0].points.size(), 3U);
  }
}

TEST(Throughput, VirtualRanksSayNothingOfADevice) {
  CaseRecord record = made_gemm(800);
  record.c.modes = {"virtual"};
  EXPECT_TRUE(section_of(made_report({record}), "throughput").empty());
}

CaseRecord rows_of(std::int64_t m, double rate, const std::string& recipe = "f32") {
  CaseRecord record = made_case("linear_forward", {{"m", m}, {"n", 64}, {"k", 32}}, recipe);
  return with_rate(std::move(record), rate / 1e3, 1000.0);
}

TEST(ThroughputByBatch, OneShapeAtSeveralBatchSizesIsALine) {
  const Section section = section_of(made_report({rows_of(8, 2e9), rows_of(1, 1e9)}), "batch");
  ASSERT_EQ(figures_of(section).size(), 1U);
  const chart::PlotChart chart = plot(figures_of(section).front());
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
  const Section section = section_of(made_report({rows_of(1, 1e9), rows_of(64, 5e10)}), "batch");
  EXPECT_EQ(plot(figures_of(section).front()).y.scale, chart::Scale::log10);
}

TEST(ThroughputByBatch, ShapesThatDifferInMoreThanTheBatchAreNotJoined) {
  EXPECT_TRUE(section_of(made_report({made_gemm(100), made_gemm(200), made_gemm(400)}), "batch").empty());
}

TEST(ThroughputByBatch, ImagesAreCountedByN) {
  std::vector<CaseRecord> cases;
  for (const std::int64_t n : {1, 4})
    cases.push_back(
        with_rate(made_case("conv2d_forward", {{"n", n}, {"h", 56}, {"w", 56}, {"c", 64}}, "f32", "conv"), 1e6, 1e3));
  const chart::PlotChart chart = plot(figures_of(section_of(made_report(cases), "batch")).front());
  EXPECT_EQ(chart.x.title, "batch (n), images");
}

TEST(BestByPrecision, TheFastestCaseOfEachPrecisionStandsAgainstItsPeak) {
  const Report report =
      made_report({made_gemm(100), made_gemm(200), with_peak(made_gemm(400, "bf16"), "bf16", 1.28e11, 5.12e11)});
  const Section section = section_of(report, "precision");
  ASSERT_EQ(figures_of(section).size(), 1U);
  const Figure figure = figures_of(section).front();
  const std::vector<chart::Bar>& of_gemm = bars(figure).groups.at(0).bars;
  ASSERT_EQ(of_gemm.size(), 2U);
  EXPECT_DOUBLE_EQ(of_gemm[0].value, 1.6e10);
  EXPECT_FALSE(of_gemm[0].limit);
  EXPECT_DOUBLE_EQ(*of_gemm[1].limit, 5.12e11);
  EXPECT_EQ(of_gemm[1].text, "128 GFLOP/s, 25.0% of peak");
  EXPECT_THAT(column_of(figure.table, "of peak"), ElementsAre("-", "25.0%"));
}

TEST(BestByPrecision, OnePrecisionWithoutAPeakHasNothingToStandAgainst) {
  EXPECT_TRUE(section_of(made_report({made_gemm(100), made_gemm(200)}), "precision").empty());
}

TEST(SeveralReports, EachIsASeriesOfItsOwn) {
  const std::vector<Report> reports{made_report({made_gemm(100), made_gemm(200), made_gemm(400)}),
                                    made_report({made_gemm(100), made_gemm(200), made_gemm(400)})};
  const chart::PlotChart chart = plot(figures_of(section_of(reports, "throughput")).front());
  ASSERT_EQ(chart.series.size(), 2U);
  EXPECT_EQ(chart.series[0].name, "A f32");
  EXPECT_EQ(chart.series[1].name, "B f32");
}

}  // namespace
}  // namespace gpubench::page
