#include "harness/core/record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>

namespace gpubench {
namespace {

constexpr std::array from_worst{Verdict::error,      Verdict::fail,        Verdict::downgraded, Verdict::not_proven,
                                Verdict::unverified, Verdict::unsupported, Verdict::skipped,    Verdict::pass};

TEST(Verdict, TheWorseOfTwoFollowsTheDocumentedOrder) {
  for (std::size_t a = 0; a < from_worst.size(); ++a) {
    for (std::size_t b = 0; b < from_worst.size(); ++b)
      EXPECT_EQ(worse(from_worst[a], from_worst[b]), from_worst[std::min(a, b)])
          << name(from_worst[a]) << " " << name(from_worst[b]);
  }
}

TEST(Verdict, NamesAreThoseOfTheReport) {
  EXPECT_EQ(name(Verdict::not_proven), "not_proven");
  EXPECT_EQ(name(Verdict::pass), "pass");
  EXPECT_EQ(name(Verdict::unsupported), "unsupported");
}

TEST(Record, NothingIsAPassByDefault) {
  EXPECT_NE(OpParity{}.verdict, Verdict::pass);
  EXPECT_NE(CaseRecord{}.verdict, Verdict::pass);
}

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

TEST(Reliability, DependsOnTheIntervalNotOnTheFlags) {
  Summary wide = timed(10, 100, 190);
  EXPECT_TRUE(timing_unreliable(wide));
  Summary narrow = timed(99, 100, 101);
  narrow.flags = {"noisy", "severe"};
  EXPECT_FALSE(timing_unreliable(narrow));
}

TEST(ConsistsOf, LooksAtTheOpsThatABriefRecordSumsUpToo) {
  CaseRecord record;
  record.parity.ops.emplace_back().kind = "copy";
  record.parity.passed.emplace().emplace_back().kind = "triad";
  EXPECT_TRUE(is_stream(record));
  record.parity.passed->front().kind = "gemm";
  EXPECT_FALSE(is_stream(record));
}

TEST(Reliability, OneRoundHasNoIntervalAndIsUnreliable) {
  Summary one = timed(100, 100, 100);
  one.rounds = 1;
  EXPECT_EQ(half_width(one), std::nullopt);
  EXPECT_TRUE(timing_unreliable(one));
}

TEST(Reliability, AnIntervalThatIsNotANumberIsUnreliable) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(timing_unreliable(timed(nan, 100, 100)));
  EXPECT_TRUE(timing_unreliable(timed(100, 100, infinite)));
  EXPECT_TRUE(timing_unreliable(timed(100, 0, 100)));
}

TEST(Reliability, AnUntimedCaseIsNotUnreliable) { EXPECT_FALSE(timing_unreliable(Summary{})); }

// 100 +- 10: a share is off by 0.1 sqrt(2) = 14.1% of itself. 0.25 / 0.1414 = 1.768 steps reach 25 points.
TEST(Reliability, AShareThatCanBeOffByAQuarterOfTheWholeIsUnknown) {
  const Summary whole = timed(90, 100, 110);
  EXPECT_TRUE(share_is_reliable(0.5, whole));
  EXPECT_TRUE(share_is_reliable(1.75, whole));
  EXPECT_FALSE(share_is_reliable(1.78, whole));
  EXPECT_FALSE(share_is_reliable(0.5, Summary{}));
}

CaseRecord step_with(double remainder, Summary summary) {
  CaseRecord record;
  record.summary = std::move(summary);
  record.derived.breakdown = {OpShare{}};
  record.derived.remainder = remainder;
  return record;
}

// Ops that take 1.7 steps alone, off by 0.24; and 19.06 steps, off by 2.7.
TEST(Reliability, ARemainderIsShownUnlessItsUncertaintyIsLarger) {
  EXPECT_EQ(reliable_remainder(step_with(-0.7, timed(90, 100, 110))), -0.7);
  EXPECT_EQ(reliable_remainder(step_with(0.12, timed(90, 100, 110))), 0.12);
  EXPECT_FALSE(reliable_remainder(step_with(-18.06, timed(90, 100, 110))).has_value());
  EXPECT_FALSE(reliable_remainder(step_with(0.12, timed(50, 100, 150))).has_value());
  CaseRecord no_parts = step_with(0.0, timed(90, 100, 110));
  no_parts.derived.breakdown.clear();
  EXPECT_FALSE(reliable_remainder(no_parts).has_value());
}

CaseRecord ranks_with(double exposed, Summary summary) {
  CaseRecord record;
  record.summary = std::move(summary);
  record.derived.ranks = RankSpread{};
  record.derived.ranks->exposed_communication = exposed;
  record.derived.ranks->efficiency = 5.72;
  return record;
}

// Computing alone takes 1.1 steps, off by 0.156: possibly the whole step. 1.2 steps, off by 0.17, cannot be.
TEST(Reliability, ExposedCommunicationBelowNothingIsUnknownBeyondItsUncertainty) {
  EXPECT_EQ(reliable_exposed(ranks_with(0.2, timed(90, 100, 110))), 0.2);
  EXPECT_EQ(reliable_exposed(ranks_with(-0.1, timed(90, 100, 110))), -0.1);
  EXPECT_FALSE(reliable_exposed(ranks_with(-0.2, timed(90, 100, 110))).has_value());
  EXPECT_FALSE(reliable_exposed(ranks_with(-0.71, timed(99, 100, 101))).has_value());
  EXPECT_FALSE(reliable_exposed(ranks_with(0.2, timed(50, 100, 150))).has_value());
  EXPECT_FALSE(reliable_exposed(CaseRecord{}).has_value());
}

TEST(Reliability, TheEfficiencyOfAnUnreliableTimingIsUnknown) {
  EXPECT_EQ(reliable_efficiency(ranks_with(0.0, timed(90, 100, 110))), 5.72);
  EXPECT_FALSE(reliable_efficiency(ranks_with(0.0, timed(50, 100, 150))).has_value());
  EXPECT_FALSE(reliable_efficiency(CaseRecord{}).has_value());
}

}  // namespace
}  // namespace gpubench
