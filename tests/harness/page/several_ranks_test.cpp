#include "harness/page/sections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;

// A step of `tokens` tokens in 1 ms, on ranks with 4 units each.
CaseRecord step(int ranks, double tokens, std::optional<double> efficiency = {}) {
  CaseRecord record = made_case("train", {{"b", 8}}, "bf16", "transformer");
  record.c.ranks = ranks;
  record.id = record.c.id();
  if (ranks > 1) record.derived.ranks = RankSpread{4 * ranks, 0.02, 0, 0.5, {}, 0.125, efficiency};
  const std::optional<RankSpread> spread = record.derived.ranks;
  record = with_rate(std::move(record), 1e6, 1e6, "tokens/s", tokens);
  record.derived.ranks = spread;
  return record;
}

// 100, 190 and 360 tokens: 1.9 and 3.6 times as many; ideal with 4, 8 and 16 units: 2 and 4.
TEST(ScalingCurves, SpeedUpStandsBesideItsIdeal) {
  const SectionPart part = part_of(made_report({step(4, 360, 0.9), step(1, 100), step(2, 190, 0.95)}), "scaling");
  ASSERT_EQ(part.figures.size(), 2U);
  const Figure figure = part.figures[0];
  ASSERT_EQ(plot(figure).series.size(), 1U);
  const std::vector<chart::Point>& points = plot(figure).series[0].points;
  ASSERT_EQ(points.size(), 3U);
  EXPECT_DOUBLE_EQ(points[1].x, 2.0);
  EXPECT_DOUBLE_EQ(points[1].y, 1.9);
  EXPECT_DOUBLE_EQ(points[2].y, 3.6);
  ASSERT_EQ(plot(figure).guides.size(), 1U);
  EXPECT_EQ(plot(figure).guides[0].label, "ideal");
  ASSERT_EQ(plot(figure).guides[0].points.size(), 3U);
  EXPECT_DOUBLE_EQ(plot(figure).guides[0].points[1].y, 2.0);
  EXPECT_DOUBLE_EQ(plot(figure).guides[0].points[2].y, 4.0);
  EXPECT_THAT(column_of(figure.table, "speed-up"), ElementsAre("1.000", "1.900", "3.600"));
  EXPECT_THAT(column_of(figure.table, "units"), ElementsAre("4", "8", "16"));
  EXPECT_THAT(column_of(figure.table, "exposed communication"), ElementsAre("-", "12.5%", "12.5%"));
  const chart::PlotChart efficiency = plot(part.figures[1]);
  ASSERT_EQ(efficiency.series[0].points.size(), 3U);
  EXPECT_DOUBLE_EQ(efficiency.series[0].points[0].y, 1.0);
  EXPECT_DOUBLE_EQ(efficiency.series[0].points[2].y, 0.9);
}

// Ranks on a CPU share the processors, so 1 is ideal.
TEST(ScalingCurves, RanksThatShareTheProcessorsAreNotExpectedToBeFaster) {
  CaseRecord two = step(2, 100, 1.0);
  two.derived.ranks->units = 4;
  const SectionPart part = part_of(made_report({step(1, 100), two}, "cpu"), "scaling");
  ASSERT_EQ(part.figures.size(), 1U);
  EXPECT_DOUBLE_EQ(plot(part.figures[0]).guides[0].points[1].y, 1.0);
}

// Four ranks in three rounds of pairs; the link between 0 and 3 takes 2 ms, the others 1 ms for 4 MB.
std::vector<CaseRecord> exchanges() {
  std::vector<CaseRecord> records;
  for (const std::vector<int>& partners :
       {std::vector<int>{1, 0, 3, 2}, std::vector<int>{2, 3, 0, 1}, std::vector<int>{3, 2, 1, 0}}) {
    CaseRecord record =
        made_case("send_recv_pairs", {{"bytes", 4000000}, {"round", 1 + std::ssize(records)}}, "f32", "collectives");
    record.c.ranks = 4;
    record.id = record.c.id();
    for (RoundRecord& round : record.rounds) {
      round.times.ranks.emplace();
      for (int rank = 0; rank < 4; ++rank) {
        const bool slow = rank + partners[static_cast<std::size_t>(rank)] == 3 && rank % 3 == 0;
        round.times.ranks->push_back({std::vector<double>(4, slow ? 4e6 : 2e6)});
      }
    }
    record.derived.collective = CollectiveRates{4e6, 4e9, 4e9};
    record.derived.ranks = RankSpread{.partners = partners};
    records.push_back(std::move(record));
  }
  return records;
}

TEST(Links, AreAMapOfRanksInWhichTheLateOneIsMarked) {
  const SectionPart part = part_of(made_report(exchanges()), "scaling", "Links between ranks");
  ASSERT_EQ(part.figures.size(), 1U);
  const Figure figure = part.figures[0];
  const auto& map = std::get<chart::HeatMap>(figure.chart);
  EXPECT_THAT(map.columns, ElementsAre("0", "1", "2", "3"));
  ASSERT_EQ(map.cells.size(), 4U);
  EXPECT_EQ(map.cells[0][0].text, "");
  EXPECT_EQ(map.cells[0][1].text, "100%");
  EXPECT_EQ(map.cells[0][3].text, "50%");
  EXPECT_EQ(map.cells[3][0].text, "50%");
  EXPECT_TRUE(map.cells[0][3].marked);
  EXPECT_FALSE(map.cells[1][2].marked);
  EXPECT_THAT(column_of(figure.table, "ranks"),
              ElementsAre("0 and 1", "0 and 2", "0 and 3", "1 and 2", "1 and 3", "2 and 3"));
  EXPECT_THAT(column_of(figure.table, "behind"), ElementsAre("0.0%", "0.0%", "100.0%", "0.0%", "0.0%", "0.0%"));
  EXPECT_EQ(column_of(figure.table, "rounds behind")[2], "10 of 10");
}

TEST(Links, TellWhereTheirRanksAreAndWhichTimingsAreUnsure) {
  std::vector<CaseRecord> records = exchanges();
  records[0].summary.ci95_high_ns = 4.0 * records[0].summary.median_ns;
  Report report = made_report(std::move(records));
  report.run.devices.front().properties.emplace_back("rank_places", "a:0,a:1,b:0,b:1");
  const Figure figure = part_of(report, "scaling", "Links between ranks").figures[0];
  const auto& map = std::get<chart::HeatMap>(figure.chart);
  EXPECT_THAT(map.rows,
              ElementsAre("rank 0 (a, GPU 0)", "rank 1 (a, GPU 1)", "rank 2 (b, GPU 0)", "rank 3 (b, GPU 1)"));
  EXPECT_EQ(map.cells[0][1].text, "~100%");
  EXPECT_EQ(map.cells[0][3].text, "50%");
  EXPECT_THAT(map.description, ::testing::HasSubstr("ranks 0 (a, GPU 0) and 3 (b, GPU 1): 100.0% behind."));
}

// 572% of one rank, and a step faster than its parts without communication, beyond +-10% of each timing.
TEST(ScalingCurves, WhatIsImpossibleBeyondItsUncertaintyIsUnknown) {
  CaseRecord impossible = step(2, 1144, 5.72);
  impossible.derived.ranks->exposed_communication = -0.71;
  CaseRecord possible = step(4, 420, 1.05);  // 105% of +-20% may be 100%
  possible.derived.ranks->exposed_communication = -0.1;
  const SectionPart part = part_of(made_report({step(1, 100), impossible, possible}), "scaling");
  const Figure figure = part.figures[0];
  EXPECT_THAT(column_of(figure.table, "efficiency"), ElementsAre("-", "unknown", "105.0%"));
  EXPECT_THAT(column_of(figure.table, "exposed communication"), ElementsAre("-", "unknown", "-10.0%"));
  const chart::PlotChart efficiency = plot(part.figures[1]);
  ASSERT_EQ(efficiency.series[0].points.size(), 2U);
  EXPECT_DOUBLE_EQ(efficiency.series[0].points[1].y, 1.05);
}

TEST(ScalingCurves, AnUnreliableTimingIsHollowAndInNoEfficiency) {
  CaseRecord unsure = step(2, 190, 0.95);
  unsure.summary.ci95_high_ns = 2e6;
  const SectionPart part = part_of(made_report({step(1, 100), unsure, step(4, 360, 0.9)}), "scaling");
  const Figure figure = part.figures[0];
  EXPECT_THAT(column_of(figure.table, "speed-up"), ElementsAre("1.000", "unknown", "3.600"));
  EXPECT_THAT(column_of(figure.table, "efficiency"), ElementsAre("-", "unknown", "90.0%"));
  EXPECT_THAT(column_of(figure.table, "exposed communication"), ElementsAre("-", "unknown", "12.5%"));
  EXPECT_FALSE(plot(figure).series[0].points[0].doubtful);
  EXPECT_TRUE(plot(figure).series[0].points[1].doubtful);
  EXPECT_EQ(plot(part.figures[1]).series[0].points.size(), 2U);
}

// As on the console: 87.5% of a step of +-22% may be off by 0.875 x 22% x sqrt(2) = 27 points, more than 25.
TEST(ScalingCurves, ExposedCommunicationIsUnknownFromWhereItIsOnTheConsole) {
  CaseRecord two = step(2, 190, 0.95);
  two.summary.ci95_low_ns = 0.78e6;
  two.summary.ci95_high_ns = 1.22e6;
  const Figure figure = part_of(made_report({step(1, 100), two}), "scaling").figures[0];
  EXPECT_THAT(column_of(figure.table, "efficiency"), ElementsAre("-", "95.0%"));
  EXPECT_THAT(column_of(figure.table, "exposed communication"), ElementsAre("-", "unknown"));
}

TEST(ScalingCurves, ASingleRankCountIsNoCurve) {
  EXPECT_TRUE(part_of(made_report({step(2, 190)}), "scaling").empty());
  EXPECT_TRUE(part_of(made_report({step(1, 100)}), "scaling").empty());
  EXPECT_TRUE(
      part_of(made_report({step(1, 100), with_verdict(step(2, 190), Verdict::fail, "wrong")}), "scaling").empty());
}

TEST(ScalingCurves, VirtualRanksAreNeverDrawn) {
  CaseRecord two = step(2, 190);
  two.c.modes = {"virtual"};
  EXPECT_TRUE(part_of(made_report({step(1, 100), two}), "scaling").empty());
}

// A message of `bytes` over 2 ranks in 1 ms: algbw is a thousand times as much, and so is busbw, 2 (n - 1) / n = 1.
CaseRecord all_reduce(std::int64_t bytes, int ranks = 2, const std::vector<std::string>& modes = {}) {
  CaseRecord record = made_case("all_reduce", {{"bytes", bytes}}, "f32", "collectives");
  record.c.ranks = ranks;
  record.c.modes = modes;
  record.id = record.c.id();
  const auto size = static_cast<double>(bytes);
  const double factor = 2.0 * (ranks - 1) / ranks;
  record = with_rate(std::move(record), 0.0, size * factor, "B/s");
  record.derived.collective = CollectiveRates{size, size * 1e3, size * 1e3 * factor};
  return record;
}

TEST(BusBandwidth, EachMessageSizeIsAPointAtItsBusBandwidth) {
  const SectionPart part = part_of(made_report({all_reduce(1 << 20, 4), all_reduce(1024, 4), all_reduce(32768, 4),
                                                all_reduce(1024), all_reduce(2048)}),
                                   "scaling", "Bus bandwidth");
  ASSERT_EQ(part.figures.size(), 1U);
  const Figure figure = part.figures.front();
  ASSERT_EQ(plot(figure).series.size(), 2U);
  EXPECT_EQ(plot(figure).series[0].name, "f32, 4 ranks");
  ASSERT_EQ(plot(figure).series[0].points.size(), 3U);
  EXPECT_DOUBLE_EQ(plot(figure).series[0].points[0].x, 1024.0);
  EXPECT_DOUBLE_EQ(plot(figure).series[0].points[0].y, 1024e3 * 1.5);
  EXPECT_EQ(plot(figure).x.scale, chart::Scale::log2);
  EXPECT_EQ(plot(figure).x.labels, chart::TickLabels::bytes);
  EXPECT_EQ(plot(figure).y.scale, chart::Scale::log10);
  EXPECT_THAT(column_of(figure.table, "message"), ElementsAre("1 MiB", "1 KiB", "32 KiB", "1 KiB", "2 KiB"));
  EXPECT_EQ(column_of(figure.table, "busbw")[1], "1.54 MB/s");
  EXPECT_EQ(column_of(figure.table, "algbw")[1], "1.02 MB/s");
}

TEST(BusBandwidth, TheLinkIsAGuideWhereItIsKnown) {
  CaseRecord linked = all_reduce(1024);
  linked.derived.peak =
      PeakShare{"link", 1.024e6, 4.5e11, "a sheet, one direction", 1.024e6 / 4.5e11, {}, {}, {}, "", ""};
  const SectionPart part =
      part_of(made_report({linked, all_reduce(2048), all_reduce(4096)}), "scaling", "Bus bandwidth");
  ASSERT_EQ(plot(part.figures.front()).guides.size(), 1U);
  EXPECT_EQ(plot(part.figures.front()).guides[0].label, "link");
  EXPECT_DOUBLE_EQ(plot(part.figures.front()).guides[0].points[0].y, 4.5e11);
}

TEST(BusBandwidth, AModeAtOneSizeIsABarOfItsOwn) {
  const SectionPart part =
      part_of(made_report({all_reduce(1024), all_reduce(2048), all_reduce(4096), all_reduce(1024, 2, {"in_place"})}),
              "scaling", "Bus bandwidth");
  ASSERT_EQ(part.figures.size(), 2U);
  const auto bars = std::get<chart::BarChart>(part.figures[1].chart);
  ASSERT_EQ(bars.groups.size(), 1U);
  EXPECT_EQ(bars.groups[0].title, "collectives/all_reduce in_place");
  EXPECT_EQ(bars.groups[0].bars[0].label, "1 KiB f32, 2 ranks");
}

TEST(BusBandwidth, OpsThatMoveNothingHaveNone) {
  EXPECT_TRUE(
      part_of(made_report({made_gemm(100), made_gemm(200), made_gemm(400)}), "scaling", "Bus bandwidth").empty());
}

}  // namespace
}  // namespace gpubench::page
