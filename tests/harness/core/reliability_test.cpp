#include "harness/core/reliability.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpubench {
namespace {

Summary timed(double low, double median, double high) {
  Summary s;
  s.rounds = 3;
  s.median_ns = median;
  s.ci95_low_ns = low;
  s.ci95_high_ns = high;
  return s;
}

// From 80 to 130 around 100: 25 to either side on average.
TEST(Reliability, TheLimitIsAQuarterOfTheMedian) {
  EXPECT_EQ(half_width(timed(80, 100, 130)), 0.25);
  EXPECT_FALSE(timing_unreliable(timed(80, 100, 130)));
  EXPECT_TRUE(timing_unreliable(timed(80, 100, 131)));
  EXPECT_FALSE(timing_unreliable(timed(100, 100, 100)));  // rounds that agree to the nanosecond
}

TEST(Reliability, ItGoesByTheIntervalWhateverTheFlagsSay) {
  Summary wide = timed(10, 100, 190);
  EXPECT_TRUE(timing_unreliable(wide));
  Summary narrow = timed(99, 100, 101);
  narrow.flags = {"noisy", "severe"};
  EXPECT_FALSE(timing_unreliable(narrow));
}

TEST(Reliability, OneRoundHasNoIntervalAndIsUnreliable) {
  Summary one = timed(100, 100, 100);
  one.rounds = 1;
  EXPECT_EQ(half_width(one), std::nullopt);
  EXPECT_TRUE(timing_unreliable(one));
}

TEST(Reliability, AnIntervalThatIsNoNumberIsUnreliable) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(timing_unreliable(timed(nan, 100, 100)));
  EXPECT_TRUE(timing_unreliable(timed(100, 100, infinite)));
  EXPECT_TRUE(timing_unreliable(timed(100, 0, 100)));
}

TEST(Reliability, WhatWasNotTimedIsNotInDoubt) { EXPECT_FALSE(timing_unreliable(Summary{})); }

}  // namespace
}  // namespace gpubench
