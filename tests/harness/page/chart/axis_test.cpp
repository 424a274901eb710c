#include "harness/page/chart/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace gpubench::chart {
namespace {

using ::testing::ElementsAre;

AxisScale scale_of(Scale scale, TickLabels labels, double low, double high) {
  return {Axis{.title = "", .scale = scale, .labels = labels, .unit = "", .low = low, .high = high}, {}, Ends::data};
}

std::vector<std::string> labels_of(const AxisScale& scale, int most) {
  std::vector<std::string> labels;
  for (const Tick& tick : ticks(scale, most, [](std::span<const Tick>) { return true; })) labels.push_back(tick.label);
  return labels;
}

TEST(Axis, APositionIsLinearInTheValueOrInItsLogarithm) {
  EXPECT_DOUBLE_EQ(scale_of(Scale::linear, TickLabels::plain, 10.0, 30.0).position(15.0), 0.25);
  EXPECT_DOUBLE_EQ(scale_of(Scale::log2, TickLabels::plain, 2.0, 32.0).position(4.0), 0.25);  // one octave of four
  EXPECT_DOUBLE_EQ(scale_of(Scale::log10, TickLabels::plain, 1.0, 1e4).position(1e3), 0.75);  // three decades of four
}

TEST(Axis, LinearTicksAreMultiplesOfOneTwoOrFive) {
  EXPECT_THAT(labels_of(scale_of(Scale::linear, TickLabels::plain, 0.0, 1.0), 7),
              ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(labels_of(scale_of(Scale::linear, TickLabels::plain, -7.0, 12.0), 5), ElementsAre("-5", "0", "5", "10"));
  EXPECT_THAT(labels_of(scale_of(Scale::linear, TickLabels::plain, 0.0, 30000.0), 4),
              ElementsAre("0", "10,000", "20,000", "30,000"));
}

TEST(Axis, BinaryBytesFrom8KiBTo8GiBHaveTicksThatMeetAtRoundNames) {
  const AxisScale scale = scale_of(Scale::log2, TickLabels::bytes, 0x1p13, 0x1p33);
  EXPECT_THAT(labels_of(scale, 21).size(), 21U);  // the powers of two from 13 to 33
  EXPECT_THAT(labels_of(scale, 5), ElementsAre("32 KiB", "1 MiB", "32 MiB", "1 GiB"));  // 2^15, 2^20, 2^25, 2^30
  EXPECT_EQ(labels_of(scale, 21).front(), "8 KiB");
  EXPECT_EQ(labels_of(scale, 21).back(), "8 GiB");
}

TEST(Axis, DecadesHaveTwoAndFiveBetweenThemWhereTheyAreFew) {
  EXPECT_THAT(labels_of(scale_of(Scale::log10, TickLabels::si, 1e9, 1e10), 8), ElementsAre("1G", "2G", "5G", "10G"));
  EXPECT_THAT(labels_of(scale_of(Scale::log10, TickLabels::si, 1e9, 1e13), 8),
              ElementsAre("1G", "10G", "100G", "1T", "10T"));
}

TEST(Axis, LessThanAnOctaveStillHasTicks) {
  EXPECT_THAT(labels_of(scale_of(Scale::log2, TickLabels::plain, 5.0, 7.0), 8),
              ElementsAre("5.0", "5.5", "6.0", "6.5", "7.0"));
  EXPECT_GE(labels_of(scale_of(Scale::log10, TickLabels::plain, 0.91, 1.09), 8).size(), 2U);
}

TEST(Axis, LabelsAreWrittenAsTheirKindSays) {
  EXPECT_THAT(labels_of(scale_of(Scale::linear, TickLabels::si, 0.0, 1.2e12), 7),
              ElementsAre("0", "0.2T", "0.4T", "0.6T", "0.8T", "1.0T", "1.2T"));
  EXPECT_THAT(labels_of(scale_of(Scale::linear, TickLabels::percent, 0.0, 1.0), 3), ElementsAre("0%", "50%", "100%"));
  EXPECT_THAT(labels_of(scale_of(Scale::linear, TickLabels::time_ns, 0.0, 2e6), 5),
              ElementsAre("0", "0.5 ms", "1.0 ms", "1.5 ms", "2.0 ms"));
  EXPECT_THAT(labels_of(scale_of(Scale::log10, TickLabels::time_ns, 1e2, 1e5), 4),
              ElementsAre("100 ns", "1 us", "10 us", "100 us"));
  EXPECT_THAT(labels_of(scale_of(Scale::linear, TickLabels::bytes, 0.0, 4096.0), 5),
              ElementsAre("0", "1 KiB", "2 KiB", "3 KiB", "4 KiB"));
}

AxisScale scale_in(const std::string& unit, Scale scale, double low, double high) {
  return {Axis{.title = "rate", .scale = scale, .labels = TickLabels::si, .unit = unit, .low = low, .high = high},
          {},
          Ends::data};
}

// One prefix per axis, that of its upper end or of its middle decade, shown with the unit.
TEST(Axis, RatesAreInUnitsAsPeopleSayThem) {
  const AxisScale linear = scale_in("FLOP/s", Scale::linear, 0.0, 400e9);
  EXPECT_EQ(axis_title(linear), "rate (GFLOP/s)");
  EXPECT_THAT(labels_of(linear, 5), ElementsAre("0", "100", "200", "300", "400"));
  const AxisScale decades = scale_in("B/s", Scale::log10, 1e8, 1e13);
  EXPECT_EQ(axis_title(decades), "rate (GB/s)");
  EXPECT_THAT(labels_of(decades, 8), ElementsAre("0.1", "1", "10", "100", "1000", "10,000"));
}

TEST(Axis, WhatNobodySaysWithAPrefixKeepsItsUnitAndEachLabelItsOwn) {
  const AxisScale tokens = scale_in("tokens/s", Scale::linear, 0.0, 40e3);
  EXPECT_EQ(axis_title(tokens), "rate (tokens/s)");
  EXPECT_THAT(labels_of(tokens, 5), ElementsAre("0", "10k", "20k", "30k", "40k"));
  const AxisScale nine_decades = scale_in("FLOP", Scale::log10, 1e3, 1e12);
  EXPECT_EQ(axis_title(nine_decades), "rate (FLOP)");
  EXPECT_THAT(labels_of(nine_decades, 4), ElementsAre("1k", "1M", "1G", "1T"));
}

TEST(Axis, TicksThatDoNotFitBecomeFewerNeverNone) {
  const AxisScale scale = scale_of(Scale::linear, TickLabels::plain, 0.0, 10.0);
  const auto at_most_three = [](std::span<const Tick> found) { return found.size() <= 3; };
  EXPECT_EQ(ticks(scale, 8, at_most_three).size(), 3U);  // 0, 5, 10
  EXPECT_EQ(ticks(scale, 8, [](std::span<const Tick>) { return false; }).size(), 1U);
}

TEST(Axis, NiceEndsAreTheNextRoundNumbers) {
  const Axis log10{.title = "", .scale = Scale::log10};
  const AxisScale decades(log10, {3.0, 130.0}, Ends::nice);
  EXPECT_DOUBLE_EQ(decades.low(), 2.0);
  EXPECT_DOUBLE_EQ(decades.high(), 200.0);
  const AxisScale linear(Axis{}, {0.3, 9.7}, Ends::nice);  // a fifth is 1.88, with half again 2.82: steps of 2
  EXPECT_DOUBLE_EQ(linear.low(), 0.0);
  EXPECT_DOUBLE_EQ(linear.high(), 10.0);
}

TEST(Axis, OneValueAloneHasRoomOnBothSides) {
  const AxisScale linear(Axis{}, {8.0, 8.0}, Ends::data);
  EXPECT_DOUBLE_EQ(linear.position(8.0), 0.5);
  const AxisScale zero(Axis{}, {0.0, 0.0}, Ends::data);
  EXPECT_DOUBLE_EQ(zero.position(0.0), 0.5);
  const AxisScale logarithmic(Axis{.title = "", .scale = Scale::log2}, {8.0, 8.0}, Ends::data);
  EXPECT_DOUBLE_EQ(logarithmic.low(), 4.0);
  EXPECT_DOUBLE_EQ(logarithmic.high(), 16.0);
}

TEST(Axis, GivenEndsComeBeforeTheDataUnlessTheyMakeNoSense) {
  EXPECT_DOUBLE_EQ(AxisScale(Axis{.low = 0.0}, {3.0, 4.0}, Ends::data).low(), 0.0);
  const AxisScale swapped(Axis{.low = 9.0, .high = 1.0}, {3.0, 4.0}, Ends::data);
  EXPECT_DOUBLE_EQ(swapped.low(), 3.0);
  const AxisScale below_zero(Axis{.title = "", .scale = Scale::log10, .low = -1.0}, {3.0, 4.0}, Ends::data);
  EXPECT_DOUBLE_EQ(below_zero.low(), 3.0);
}

TEST(Axis, WhatIsNotFiniteOrNotPositiveOnALogarithmIsNotDrawable) {
  const Axis logarithmic{.title = "", .scale = Scale::log10};
  EXPECT_FALSE(drawable(Axis{}, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_FALSE(drawable(Axis{}, std::numeric_limits<double>::infinity()));
  EXPECT_TRUE(drawable(Axis{}, -1.0));
  EXPECT_FALSE(drawable(logarithmic, 0.0));
  EXPECT_FALSE(drawable(logarithmic, -1.0));
  EXPECT_TRUE(drawable(logarithmic, 1e-300));
}

}  // namespace
}  // namespace gpubench::chart
