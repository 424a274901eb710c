// What rounds tell: noise strips, the device over time, energy and cost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/page/sections.h"
#include "tests/harness/page/made_cases.h"

namespace gpubench::page {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

CaseRecord spread(std::int64_t n, double p90) {
  CaseRecord record = made_gemm(n);
  record.summary.p90_ns = p90;
  return record;
}

// Samples are of 2 runs: 2 ms, 2.2 ms, 1.8 ms and 3 ms over a median of 1 ms are 100%, 110%, 90% and 150%.
TEST(NoiseStrips, SamplesAreMultiplesOfTheMedian) {
  CaseRecord record = spread(100, 1.5e6);
  record.rounds.resize(2);
  record.rounds[0].times.device_ns = {2e6, 2.2e6, 1.8e6};
  record.rounds[1].times.device_ns = {2e6, 3e6, 2e6};
  const Figure figure = figures_of(section_of(made_report({record}), "noise")).front();
  ASSERT_EQ(plot(figure).series.size(), 1U);
  EXPECT_EQ(plot(figure).series[0].mark, chart::Mark::strip);
  std::vector<double> x, y;
  for (const chart::Point& point : plot(figure).series[0].points) {
    x.push_back(point.x);
    y.push_back(point.y);
  }
  EXPECT_THAT(x, ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_THAT(y, ElementsAre(1.0, 1.1, 0.9, 1.0, 1.5, 1.0));
  EXPECT_THAT(column_of(figure.table, "lowest"), ElementsAre("90.0%", "100.0%"));
  EXPECT_THAT(column_of(figure.table, "median"), ElementsAre("100.0%", "100.0%"));
  EXPECT_THAT(column_of(figure.table, "highest"), ElementsAre("110.0%", "150.0%"));
}

TEST(NoiseStrips, TheNoisiestAMiddleOneAndTheSteadiestAreChosen) {
  std::vector<CaseRecord> cases;
  for (std::int64_t i = 1; i <= 9; ++i) cases.push_back(spread(i, 1e6 + 1e4 * static_cast<double>(i)));
  const std::vector<Figure> figures = figures_of(section_of(made_report(cases), "noise"));
  ASSERT_EQ(figures.size(), 6U);
  const std::vector<std::string> notes{figures[0].table.note, figures[3].table.note, figures[4].table.note,
                                       figures[5].table.note};
  EXPECT_THAT(notes, ElementsAre(HasSubstr("m=9,"), HasSubstr("m=6,"), HasSubstr("m=5,"), HasSubstr("m=1,")));
}

TEST(NoiseStrips, OfManySamplesAnEvenChoiceIsDrawn) {
  CaseRecord record = spread(100, 1.5e6);
  for (RoundRecord& round : record.rounds) round.times.device_ns.assign(500, 2e6);
  const Figure figure = figures_of(section_of(made_report({record}), "noise")).front();
  EXPECT_LE(plot(figure).series[0].points.size(), 250U);
  EXPECT_GE(plot(figure).series[0].points.size(), 200U);
  EXPECT_THAT(column_of(figure.table, "samples")[0], "500");
}

TEST(NoiseStrips, RoundsThatDoNotCountAreLeftOut) {
  CaseRecord record = spread(100, 1.5e6);
  record.rounds.resize(3);
  record.rounds[1].valid = false;
  const Figure figure = figures_of(section_of(made_report({record}), "noise")).front();
  EXPECT_THAT(column_of(figure.table, "round"), ElementsAre("1", "3"));
}

CaseRecord sensed(std::int64_t n, double mhz, const std::vector<std::string>& reasons = {}) {
  CaseRecord record = made_gemm(n);
  record.rounds.resize(2);
  for (RoundRecord& round : record.rounds) {
    RoundTelemetry t;
    t.window_s = 2.0;
    t.sm_mhz = Spread{mhz - 10, mhz, mhz + 10};
    t.power_w = 300.0;
    t.temperature_c = 60.0;
    t.reasons = reasons;
    round.telemetry = t;
  }
  return record;
}

TEST(DeviceOverTime, RoundsFollowEachOtherWithTheirClocksAndSuitesAsBands) {
  const Section section = section_of(made_report({sensed(100, 1500), sensed(200, 1400)}), "device");
  EXPECT_EQ(section.title, "Clocks, power and temperature");
  ASSERT_EQ(figures_of(section).size(), 3U);  // clock, power, temperature; nothing else was told
  const Figure clock = figures_of(section)[0];
  ASSERT_EQ(plot(clock).series[0].points.size(), 4U);
  EXPECT_DOUBLE_EQ(plot(clock).series[0].points[3].x, 6.0);
  EXPECT_DOUBLE_EQ(plot(clock).series[0].points[3].y, 1400.0);
  EXPECT_DOUBLE_EQ(*plot(clock).series[0].points[3].low, 1390.0);
  ASSERT_EQ(plot(clock).bands.size(), 1U);
  EXPECT_EQ(plot(clock).bands[0].label, "gemm");
  EXPECT_DOUBLE_EQ(plot(clock).bands[0].to, 8.0);
  EXPECT_THAT(column_of(clock.table, "median"), ElementsAre("1500", "1500", "1400", "1400"));
}

TEST(DeviceOverTime, ReasonsOfLowerClocksAreMarksAndIdleIsNone) {
  const Section section =
      section_of(made_report({sensed(100, 1500, {"idle"}), sensed(200, 1400, {"sw_power_cap"})}), "device");
  ASSERT_EQ(figures_of(section).size(), 4U);
  const Figure reasons = figures_of(section)[3];
  ASSERT_EQ(plot(reasons).series.size(), 1U);
  EXPECT_EQ(plot(reasons).series[0].name, "sw_power_cap");
  EXPECT_DOUBLE_EQ(plot(reasons).series[0].points[0].x, 5.0);  // the middle of the third round
  EXPECT_DOUBLE_EQ(plot(reasons).series[0].points[0].y, 1.0);
}

TEST(DeviceOverTime, OfVeryManyRoundsACasesAreDrawnTogether) {
  CaseRecord record = sensed(100, 1500);
  record.rounds.resize(1);
  record.rounds.resize(500, record.rounds[0]);
  record.rounds[7].telemetry->sm_mhz = Spread{900, 1500, 1510};
  const Figure clock = figures_of(section_of(made_report({record, sensed(200, 1400)}), "device")).front();
  ASSERT_EQ(plot(clock).series[0].points.size(), 2U);
  EXPECT_DOUBLE_EQ(*plot(clock).series[0].points[0].low, 900.0);
}

TEST(DeviceOverTime, ADeviceWithoutSensorsHasNoTimeLine) {
  EXPECT_TRUE(section_of(made_report({made_gemm(100), made_gemm(200)}), "device").empty());
}

// 5e-11 J per FLOP is 20 GFLOP per joule.
TEST(Energy, WorkPerJouleIsTheInverseOfEnergyPerWork) {
  CaseRecord record = made_gemm(100);
  record.derived.energy_j = 1e-4;
  record.derived.energy_per_work_j = 5e-11;
  const Figure figure = figures_of(section_of(made_report({record, made_gemm(200)}), "energy")).front();
  const auto& bars = std::get<chart::BarChart>(figure.chart);
  ASSERT_EQ(bars.groups[0].bars.size(), 1U);
  EXPECT_DOUBLE_EQ(bars.groups[0].bars[0].value, 2e10);
  EXPECT_THAT(column_of(figure.table, "work per joule"), ElementsAre("20.0 GFLOP/J"));
  EXPECT_THAT(column_of(figure.table, "energy of a run"), ElementsAre("0.0001 J"));
}

TEST(Energy, WithoutACounterThereIsNone) { EXPECT_TRUE(section_of(made_report({made_gemm(100)}), "energy").empty()); }

CaseRecord tokens(int ranks) {
  CaseRecord record =
      with_rate(made_case("gpt2_train_step", {{"b", 8}}, "bf16", "transformer"), 1e9, 1e6, "tokens/s", 50.0);
  record.c.ranks = ranks;
  record.id = record.c.id();
  return record;
}

// 50 tokens in 1 ms are 50,000 a second: a million takes 20 s, at 3.6 an hour 0.001 a second: 0.02. On two ranks two
// devices are paid. 1e9 FLOP in 1 ms: an exaFLOP takes 1e6 s: 1000.
TEST(Cost, IsThePriceOfTheTimeThatTheWorkTakes) {
  const Section section = section_of(made_report({tokens(1), tokens(2)}), "cost", {3.6});
  ASSERT_EQ(figures_of(section).size(), 2U);
  EXPECT_THAT(column_of(figures_of(section)[0].table, "Cost of a million tokens"), ElementsAre("0.02", "0.04"));
  EXPECT_THAT(column_of(figures_of(section)[1].table, "Cost of an exaFLOP (10^18)"), ElementsAre("1000", "2000"));
}

TEST(Cost, RanksOfOneProcessorSharePrice) {
  const Section section = section_of(made_report({tokens(2)}, "cpu"), "cost", {3.6});
  EXPECT_THAT(column_of(figures_of(section)[0].table, "Cost of a million tokens"), ElementsAre("0.02"));
}

// A block, a convolution and a matrix product are parts of what anybody pays for.
TEST(Cost, OnlyWholeStepsArePriced) {
  CaseRecord block = with_rate(made_case("gpt2_block", {{"b", 8}}, "bf16", "transformer"), 1e9, 1e6, "tokens/s", 50.0);
  CaseRecord images = with_rate(made_case("conv2d_forward", {{"n", 8}}, "f32", "conv"), 1e9, 1e6);
  images.derived.item = "images";
  images.derived.items_per_s = 1e6;
  const Section section = section_of(made_report({block, images, made_gemm(100), tokens(1)}), "cost", {3.6});
  for (const Figure& figure : figures_of(section))
    EXPECT_THAT(column_of(figure.table, "case"), ElementsAre("transformer/gpt2_train_step/b=8/bf16/x1"));
  const Section none = section_of(made_report({block, images}), "cost", {3.6});
  EXPECT_TRUE(figures_of(none).empty());
  EXPECT_THAT(none.notice, ::testing::HasSubstr("No whole training step passed"));
}

TEST(Cost, AnUnreliableRateHasNoPrice) {
  CaseRecord unsure = tokens(2);
  unsure.summary.ci95_high_ns = 2e6;
  const Section section = section_of(made_report({tokens(1), unsure}), "cost", {3.6});
  EXPECT_THAT(column_of(figures_of(section)[0].table, "Cost of a million tokens"), ElementsAre("0.02"));
  EXPECT_THAT(section.lead, ::testing::HasSubstr("1 step is left out: the timing is unreliable."));
}

TEST(Cost, NothingIsSaidWithoutAPrice) { EXPECT_TRUE(section_of(made_report({tokens(1)}), "cost").empty()); }

}  // namespace
}  // namespace gpubench::page
