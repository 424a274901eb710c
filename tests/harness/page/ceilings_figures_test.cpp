#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/page/sections.h"
#include "harness/page/side.h"
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
  record.parity.ops[0].kind = "gradient_norm";
  record.derived.peak = PeakShare{"memory", 4e9, peak, "a sheet", {}, {}, {}, of_best, "best/copy", ""};
  return record;
}

CaseRecord streaming(const std::string& kind, double bytes) {
  CaseRecord record = with_rate(made_case(kind, {{"n", 6}}, "f32", "memory"), 0.0, bytes, "B/s");
  record.parity.ops[0].kind = kind;
  return record;
}

CaseRecord unreliable(CaseRecord record) {
  record.summary.ci95_high_ns = 2e6;  // of 1 ms, from 0.9: +-55%
  return record;
}

// The gradient norm reads 4 MB in the time of 3 MB of a triad: not a ceiling, since its data may be in a cache.
TEST(KnownCeilings, TheMemoryIsWhatAReliableCopyOrTriadReached) {
  const std::vector<CaseRecord> cases{memory_bound({}, {}), streaming("copy", 2e6), streaming("triad", 3e6),
                                      unreliable(streaming("copy", 9e6))};
  EXPECT_DOUBLE_EQ(known_ceilings(made_report(cases)).measured_memory->value, 3e9);
  EXPECT_FALSE(known_ceilings(made_report({memory_bound({}, {})})).measured_memory);
  EXPECT_TRUE(known_ceilings(made_report({unreliable(made_gemm(600))})).measured.empty());
}

// 4 GB/s above the triad's 3, at 1/4 FLOP per byte, +-10%.
TEST(Roofline, WhatIsAboveTheRoofIsToldWithItsReason) {
  CaseRecord product = arithmetic_bound(600, {}, {});
  product.derived.bytes = 1e4;
  SectionPart part = part_of(made_report({product, memory_bound({}, {}), streaming("triad", 3e6)}), "roofline");
  ASSERT_EQ(part.figures.size(), 1U);
  EXPECT_THAT(part.tables.take(), ::testing::HasSubstr("1 case is above it"));
  const Figure figure = part.figures.front();
  EXPECT_THAT(column_of(figure.table, "why above"),
              ElementsAre("", "its data stay in a cache, or are updated in place"));
  EXPECT_THAT(column_of(figure.table, "of the measured roof"), ElementsAre("100.0%", "133.3%"));
  EXPECT_THAT(plot(figure).series[1].points[0].note, ::testing::HasSubstr("above the measured roof: its data stay"));
  EXPECT_THAT(
      part_of(made_report({product, memory_bound({}, {}), streaming("triad", 3.7e6)}), "roofline").tables.take(),
      ::testing::IsEmpty());  // 4 GB/s +-10% reach down to 3.7
}

TEST(Roofline, AnUnreliableTimingIsHollowAndHasNoShare) {
  const Figure figure = part_of(made_report({arithmetic_bound(600, 1e12, {}), memory_bound(1e11, {}),
                                             unreliable(arithmetic_bound(60, 1e12, {}))}),
                                "roofline")
                            .figures.front();
  EXPECT_TRUE(plot(figure).series[0].points[0].doubtful);  // by intensity: n = 60 comes first
  EXPECT_FALSE(plot(figure).series[0].points[1].doubtful);
  EXPECT_EQ(column_of(figure.table, "of the published roof")[2], "-");
  EXPECT_EQ(column_of(figure.table, "rate")[2], "~432 MFLOP/s");
}

TEST(KnownCeilings, PublishedAndMeasuredLimitsAreToldApart) {
  const KnownCeilings known =
      known_ceilings(made_report({arithmetic_bound(600, 1e12, {}), memory_bound(1e11, {}), streaming("copy", 2e6)}));
  EXPECT_DOUBLE_EQ(known.published.at("f32").value, 1e12);
  EXPECT_DOUBLE_EQ(known.measured.at("f32").value, 4.32e11);  // 2 * 600^3 FLOP in 1 ms
  EXPECT_EQ(known.measured.at("f32").source, "gemm/matmul/m=600,n=600,k=600/f32/x1");
  EXPECT_DOUBLE_EQ(known.published_memory->value, 1e11);
  EXPECT_DOUBLE_EQ(known.measured_memory->value, 2e9);
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

// Peak 1e12 FLOP/s over 1e11 B/s: the ridge is at 10 FLOP per byte. The points are at 600 / 6 = 100 and at 1 / 4.
TEST(Roofline, TheRoofBendsWhereArithmeticMeetsMemory) {
  const SectionPart part = part_of(made_report({arithmetic_bound(600, 1e12, {}), memory_bound(1e11, {})}), "roofline");
  ASSERT_EQ(part.figures.size(), 1U);
  const Figure figure = part.figures.front();
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
      part_of(made_report({arithmetic_bound(600, 1e12, {}), memory_bound(1e11, {})}), "roofline").figures.front();
  ASSERT_EQ(plot(figure).series.size(), 2U);
  EXPECT_EQ(plot(figure).series[0].name, "gemm");
  EXPECT_DOUBLE_EQ(plot(figure).series[0].points[0].x, 100.0);
  EXPECT_DOUBLE_EQ(plot(figure).series[0].points[0].y, 4.32e11);
  EXPECT_DOUBLE_EQ(plot(figure).series[1].points[0].x, 0.25);
}

TEST(Roofline, PublishedAndMeasuredRoofsAreBothDrawn) {
  const Figure figure =

      part_of(made_report({arithmetic_bound(600, 1e12, {}), memory_bound(1e11, {}), streaming("copy", 8e6)}),
              "roofline")
          .figures.front();
  ASSERT_EQ(plot(figure).guides.size(), 2U);
  EXPECT_EQ(plot(figure).guides[1].label, "measured: 432 GFLOP/s, 8.00 GB/s");
}

TEST(Roofline, WithoutBothCeilingsThereIsNone) {
  EXPECT_TRUE(part_of(made_report({arithmetic_bound(600, 1e12, {}), memory_bound({}, {})}), "roofline").empty());
  EXPECT_TRUE(part_of(made_report({made_gemm(600), made_gemm(1200)}), "roofline").empty());
}

}  // namespace
}  // namespace gpubench::page
