#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/page/known_ceilings.h"
#include "harness/page/roofline.h"
#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;

// 2 n^3 FLOP over 12 n^2 bytes: n / 6 FLOP per byte.
CaseRecord arithmetic_bound(std::int64_t n, std::optional<double> peak, std::optional<double> of_best) {
  CaseRecord record = made_gemm(n);
  record.derived.peak =
      PeakShare{"fp32", record.derived.flop_per_s, peak, "a sheet", {}, {}, {}, of_best, "best/gemm", ""};
  return record;
}

CaseRecord memory_bound(std::optional<double> peak, std::optional<double> of_best) {
  CaseRecord record = with_rate(made_case("gradient_norm", {{"n", 6}}, "f32", "optimizer"), 1e6, 4e6, "B/s");
  record.derived.peak = PeakShare{"memory", 4e9, peak, "a sheet", {}, {}, {}, of_best, "best/copy", ""};
  return record;
}

TEST(KnownCeilings, PublishedAndMeasuredLimitsAreToldApart) {
  const KnownCeilings known = known_ceilings(made_report({arithmetic_bound(600, 1e12, 0.5), memory_bound(1e11, 0.25)}));
  EXPECT_DOUBLE_EQ(known.published.at("f32").value, 1e12);
  EXPECT_DOUBLE_EQ(known.measured.at("f32").value, 4.32e11 / 0.5);  // 2 * 600^3 FLOP in 1 ms are half of the best
  EXPECT_EQ(known.measured.at("f32").source, "best/gemm");
  EXPECT_DOUBLE_EQ(known.published_memory->value, 1e11);
  EXPECT_DOUBLE_EQ(known.measured_memory->value, 1.6e10);
  EXPECT_FALSE(known.link);
  EXPECT_EQ(known.arithmetic("f32")->source, "a sheet");
  EXPECT_EQ(known.arithmetic("bf16"), nullptr);
}

TEST(KnownCeilings, AFailedCaseTellsNoCeiling) {
  const KnownCeilings known =
      known_ceilings(made_report({with_verdict(arithmetic_bound(600, 1e12, 0.5), Verdict::fail, "wrong")}));
  EXPECT_TRUE(known.published.empty());
  EXPECT_TRUE(known.measured.empty());
}

// Peak 1e12 FLOP/s over 1e11 B/s: the ridge stands at 10 FLOP per byte. The points lie at 600 / 6 = 100 and at 1 / 4.
TEST(Roofline, TheRoofBendsWhereArithmeticMeetsMemory) {
  const Section section =
      section_of(made_report({arithmetic_bound(600, 1e12, {}), memory_bound(1e11, {})}), "roofline");
  ASSERT_EQ(figures_of(section).size(), 1U);
  const Figure figure = figures_of(section).front();
  ASSERT_EQ(plot(figure).guides.size(), 1U);
  const std::vector<chart::Point>& roof = plot(figure).guides[0].points;
  ASSERT_EQ(roof.size(), 3U);
  EXPECT_DOUBLE_EQ(roof[0].x, 0.125);
  EXPECT_DOUBLE_EQ(roof[0].y, 0.125e11);
  EXPECT_DOUBLE_EQ(roof[1].x, 10.0);
  EXPECT_DOUBLE_EQ(roof[1].y, 1e12);
  EXPECT_DOUBLE_EQ(roof[2].x, 200.0);
  EXPECT_DOUBLE_EQ(roof[2].y, 1e12);
  EXPECT_EQ(plot(figure).guides[0].label, "published: 1.00 TFLOP/s, 100 GB/s");
  EXPECT_THAT(column_of(figure.table, "FLOP per byte"), ElementsAre("100", "0.25"));
  EXPECT_THAT(column_of(figure.table, "bound by"), ElementsAre("arithmetic", "memory"));
}

TEST(Roofline, EachSuiteIsASeriesAtItsIntensity) {
  const Figure figure =
      figures_of(section_of(made_report({arithmetic_bound(600, 1e12, {}), memory_bound(1e11, {})}), "roofline"))
          .front();
  ASSERT_EQ(plot(figure).series.size(), 2U);
  EXPECT_EQ(plot(figure).series[0].name, "gemm");
  EXPECT_DOUBLE_EQ(plot(figure).series[0].points[0].x, 100.0);
  EXPECT_DOUBLE_EQ(plot(figure).series[0].points[0].y, 4.32e11);
  EXPECT_DOUBLE_EQ(plot(figure).series[1].points[0].x, 0.25);
}

TEST(Roofline, PublishedAndMeasuredRoofsAreBothDrawn) {
  const Figure figure =
      figures_of(section_of(made_report({arithmetic_bound(600, 1e12, 0.5), memory_bound(1e11, 0.5)}), "roofline"))
          .front();
  ASSERT_EQ(plot(figure).guides.size(), 2U);
  EXPECT_EQ(plot(figure).guides[1].label, "measured: 864 GFLOP/s, 8.00 GB/s");
}

TEST(Roofline, WithoutBothCeilingsThereIsNone) {
  EXPECT_TRUE(section_of(made_report({arithmetic_bound(600, 1e12, {}), memory_bound({}, {})}), "roofline").empty());
  EXPECT_TRUE(section_of(made_report({made_gemm(600), made_gemm(1200)}), "roofline").empty());
}

}  // namespace
}  // namespace gpubench::page
