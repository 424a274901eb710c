// What rounds with invented times come to.
#include "harness/measure/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/harness/measure/made_rounds.h"

namespace gpubench {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST(Summary, TimesArePerRunOfTheProgram) {
  const std::vector<RoundRecord> rounds{round_of({400, 800, 1200})};

  const Summary s = summarize(rounds, 4);

  EXPECT_EQ(s.median_ns, 200.0);
  EXPECT_EQ(s.min_ns, 100.0);
  EXPECT_EQ(s.mean_ns, 200.0);
  EXPECT_EQ(s.mad_ns, 100.0);
  EXPECT_EQ(s.p10_ns, 120.0);
  EXPECT_EQ(s.p90_ns, 280.0);
  EXPECT_EQ(s.samples, 3);
  EXPECT_EQ(s.rounds, 1);
}

// Round medians 50, 100, 200: their logs have mean ln 100 and standard deviation ln 2; t(0.975, 2) = 4.302653.
TEST(Summary, TheIntervalComesFromTheLogMediansOfRounds) {
  const Summary s = summarize(rounds_of({100, 200, 400}), 2);

  const double h = 4.302653 * std::log(2.0) / std::sqrt(3.0);
  EXPECT_NEAR(s.round_sd, std::log(2.0), 1e-12);
  EXPECT_NEAR(s.ci95_low_ns, 100.0 * std::exp(-h), 1e-4);
  EXPECT_NEAR(s.ci95_high_ns, 100.0 * std::exp(h), 1e-3);
}

TEST(Summary, OneRoundHasNoIntervalAndSaysSo) {
  const Summary s = summarize(rounds_of({100}), 1);
  EXPECT_THAT(s.flags, ElementsAre("no interval"));
  EXPECT_EQ(s.ci95_low_ns, 100.0);
  EXPECT_EQ(s.ci95_high_ns, 100.0);
}

TEST(Summary, SpoiledRoundsAreLeftOut) {
  std::vector<RoundRecord> rounds = rounds_of({100, 100, 100});
  rounds.push_back(spoiled(round_of({1000, 1000})));
  const Summary s = summarize(rounds, 1);
  EXPECT_EQ(s.rounds, 3);
  EXPECT_EQ(s.samples, 9);
  EXPECT_EQ(s.mean_ns, 100.0);
}

TEST(Summary, NoValidRoundIsNoSummary) {
  const std::vector<RoundRecord> rounds{spoiled(round_of({100}))};
  EXPECT_EQ(summarize(rounds, 1).samples, 0);
  EXPECT_EQ(summarize(rounds, 1).median_ns, 0.0);
}

TEST(Summary, QuietSamplesRaiseNoFlag) {
  EXPECT_THAT(summarize(rounds_of({100, 101, 100, 99, 100, 101, 100, 99, 100, 100}), 1).flags, IsEmpty());
}

// Round medians m/r, m, m r: their logs have deviation d = ln r, and half of the interval is sinh(4.302653 d / sqrt 3)
// of the median. That is 0.25 at d = asinh(0.25) / 2.484138 = 0.0996, where r = 1.1047.
TEST(Summary, AnIntervalOfMoreThanAQuarterOfTheMedianIsNoisy) {
  EXPECT_THAT(summarize(rounds_of({100 / 1.11, 100, 100 * 1.11}), 1).flags, ElementsAre("noisy"));
  EXPECT_THAT(summarize(rounds_of({100 / 1.10, 100, 100 * 1.10}), 1).flags, IsEmpty());
}

// One sample in three is twice as fast as the others, in every round alike: the median is sure.
TEST(Summary, SamplesThatSpreadInsideRoundsThatAgreeAreNotNoisy) {
  std::vector<RoundRecord> rounds;
  for (int r = 0; r < 5; ++r) rounds.push_back(round_of({50, 100, 100.0 + r}));
  EXPECT_THAT(summarize(rounds, 1).flags, Not(Contains("noisy")));
}

// Halves 4% apart, with a spread of 0.1% inside each: D = 0.04 and t = 0.04 / (0.001 sqrt(2/5)), about 60.
TEST(Summary, AStepOfFourPercentIsADrift) {
  const Summary s = summarize(rounds_of({100, 100.1, 100, 100.2, 100, 104, 104.1, 104, 104.2, 104}), 1);
  EXPECT_NEAR(s.drift, std::log(1.04), 1e-6);
  EXPECT_THAT(s.flags, Contains("drift"));
}

// The same 4% inside a spread of 10%: t is below 1.
TEST(Summary, AStepInsideTheNoiseIsNoDrift) {
  const Summary s = summarize(rounds_of({100, 110, 90, 105, 95, 104, 114, 94, 109, 99}), 1);
  EXPECT_GT(std::fabs(s.drift), 0.01);
  EXPECT_THAT(s.flags, Not(Contains("drift")));
}

TEST(Summary, AStepOfHalfAPercentIsNoDriftHoweverClear) {
  const Summary s = summarize(rounds_of({100, 100, 100, 100, 100, 100.5, 100.5, 100.5, 100.5, 100.5}), 1);
  EXPECT_THAT(s.flags, Not(Contains("drift")));
}

// 18 samples of 99, 100, 101 (MAD about 1%) and two of 1000: 10 x 1.4826 MAD is about 15%.
TEST(Summary, SevereOutliersAreCountedAndKept) {
  std::vector<double> samples;
  for (int i = 0; i < 6; ++i) samples.insert(samples.end(), {99, 100, 101});
  samples.insert(samples.end(), {1000, 1000});
  const Summary s = summarize(std::vector<RoundRecord>{round_of(samples), round_of({100})}, 1);
  EXPECT_EQ(s.severe, 2);
  EXPECT_EQ(s.samples, 21);
  EXPECT_THAT(s.flags, Contains("severe"));  // 2 of 21 are more than 5%
}

}  // namespace
}  // namespace gpubench
