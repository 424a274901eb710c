// The timing protocol with invented times: how often, how long, when to stop, what to conclude.
#include "harness/measure/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpubench {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr std::int64_t mib = 1 << 20;

RoundRecord round_of(std::vector<double> intervals) {
  RoundRecord record;
  record.times.wall_ns = intervals;
  record.times.device_ns = std::move(intervals);
  return record;
}

RoundRecord spoiled(RoundRecord record) {
  record.valid = false;
  record.note = "clock throttled";
  return record;
}

std::vector<RoundRecord> rounds_of(const std::vector<double>& medians) {
  std::vector<RoundRecord> rounds;
  for (const double median : medians) rounds.push_back(round_of({median, median, median}));
  return rounds;
}

TEST(Protocol, PresetsAreThoseOfTheMeasurementRules) {
  const Protocol& smoke = protocol_of(Tier::smoke);
  EXPECT_EQ(smoke.max_rounds, 3);
  EXPECT_EQ(smoke.samples, 3);
  EXPECT_EQ(smoke.min_sample_s, 200e-6);
  EXPECT_EQ(smoke.first_warmup_calls, 1);
  const Protocol& quick = protocol_of(Tier::quick);
  EXPECT_EQ(quick.max_rounds, 3);
  EXPECT_EQ(quick.samples, 5);
  EXPECT_EQ(quick.min_sample_s, 500e-6);
  const Protocol& standard = protocol_of(Tier::standard);
  EXPECT_EQ(standard.min_rounds, 10);
  EXPECT_EQ(standard.max_rounds, 20);
  EXPECT_EQ(standard.samples, 10);
  EXPECT_EQ(standard.half_width, 0.005);
  EXPECT_EQ(&protocol_of(Tier::large), &standard);
}

// T_min is 500 us: 90 us need 5.6 runs, 6 rounded up to 8.
TEST(Protocol, ABatchFillsTheMinimumTimeAndIsAPowerOfTwo) {
  const Protocol& quick = protocol_of(Tier::quick);
  EXPECT_EQ(batch_for(quick, CacheMode::cold, 90e-6), 8);
  EXPECT_EQ(batch_for(quick, CacheMode::cold, 250e-6), 2);
  EXPECT_EQ(batch_for(quick, CacheMode::warm, 500e-6), 1);
  EXPECT_EQ(batch_for(quick, CacheMode::cold, 3.0), 1);
  EXPECT_EQ(batch_for(quick, CacheMode::cold, 1e-9), 4096);
  EXPECT_EQ(batch_for(quick, CacheMode::cold, 0.0), 4096);
}

TEST(Protocol, EveryPresetHasAName) {
  std::vector<std::string_view> names;
  for (const Protocol* protocol : protocols()) names.push_back(protocol->name);
  EXPECT_THAT(names, ElementsAre("smoke", "quick", "standard", "gate", "thorough"));
  const Protocol& gate = *protocols()[3];
  EXPECT_EQ(gate.min_rounds, 5);
  EXPECT_EQ(gate.max_rounds, 10);
  EXPECT_EQ(gate.samples, 10);
  EXPECT_EQ(gate.budget_s, 5.0);
  const Protocol& thorough = *protocols()[4];
  EXPECT_EQ(thorough.min_rounds, 20);
  EXPECT_EQ(thorough.max_rounds, 40);
  EXPECT_EQ(thorough.samples, 20);
  EXPECT_EQ(thorough.half_width, 0.0025);
}

TEST(Protocol, AStepIsTimedOneByOne) { EXPECT_EQ(batch_for(protocol_of(Tier::quick), CacheMode::step, 1e-6), 1); }

TEST(Protocol, ColdCopiesExceedThreeCaches) {
  const std::int64_t plenty = std::int64_t{1} << 40;
  EXPECT_EQ(copies_for(CacheMode::cold, 10 * mib, 32 * mib, plenty), 10);  // 1 + floor(9.6)
  EXPECT_EQ(copies_for(CacheMode::cold, 96 * mib - 1, 32 * mib, plenty), 2);
  EXPECT_EQ(copies_for(CacheMode::cold, 96 * mib, 32 * mib, plenty), 1);
  EXPECT_EQ(copies_for(CacheMode::cold, 1, 32 * mib, plenty), 64);
}

TEST(Protocol, ColdCopiesTakeAQuarterOfTheMemoryAtMost) {
  EXPECT_EQ(copies_for(CacheMode::cold, 10 * mib, 32 * mib, 100 * mib), 2);
  EXPECT_EQ(copies_for(CacheMode::cold, 10 * mib, 32 * mib, 20 * mib), 1);
}

TEST(Protocol, WarmAndStepHaveOneCopy) {
  EXPECT_EQ(copies_for(CacheMode::warm, mib, 32 * mib, 1000 * mib), 1);
  EXPECT_EQ(copies_for(CacheMode::step, mib, 32 * mib, 1000 * mib), 1);
}

TEST(Settled, QuickStopsAfterThreeValidRounds) {
  const Protocol& quick = protocol_of(Tier::quick);
  std::vector<RoundRecord> rounds = rounds_of({100, 100});
  EXPECT_FALSE(settled(quick, rounds, 1, 0.0));
  rounds.push_back(spoiled(round_of({900})));
  EXPECT_FALSE(settled(quick, rounds, 1, 0.0));
  rounds.push_back(round_of({100}));
  EXPECT_TRUE(settled(quick, rounds, 1, 0.0));
}

TEST(Settled, StandardStopsAtTenRoundsWhenTheyAgreeAndAtTwentyAnyhow) {
  const Protocol& standard = protocol_of(Tier::standard);
  EXPECT_FALSE(settled(standard, rounds_of(std::vector<double>(9, 100.0)), 1, 0.0));
  EXPECT_TRUE(settled(standard, rounds_of(std::vector<double>(10, 100.0)), 1, 0.0));
  std::vector<double> noisy;
  for (int i = 0; i < 19; ++i) noisy.push_back(i % 2 == 0 ? 100.0 : 120.0);
  EXPECT_FALSE(settled(standard, rounds_of(noisy), 1, 0.0));
  noisy.push_back(100.0);
  EXPECT_TRUE(settled(standard, rounds_of(noisy), 1, 0.0));
}

// Ten rounds, half at 100 and half at 100 (1 + d): the log medians have sd = (d/2) sqrt(10/9), so the half-width is
// 2.262 sd / sqrt(10) = 0.377 d; epsilon 0.005 lies between d = 0.013 and d = 0.0135.
TEST(Settled, StandardStopsWhenTheHalfWidthIsHalfAPercent) {
  const Protocol& standard = protocol_of(Tier::standard);
  const auto spread = [](double d) {
    std::vector<double> medians;
    for (int i = 0; i < 10; ++i) medians.push_back(i % 2 == 0 ? 100.0 : 100.0 * std::exp(d));
    return rounds_of(medians);
  };
  EXPECT_TRUE(settled(standard, spread(0.0130), 1, 0.0));
  EXPECT_FALSE(settled(standard, spread(0.0135), 1, 0.0));
}

TEST(Settled, TheBudgetEndsACaseOnceItHasItsFewestRounds) {
  const Protocol& standard = protocol_of(Tier::standard);
  std::vector<double> noisy{100, 150, 100, 150, 100, 150, 100, 150, 100};
  EXPECT_FALSE(settled(standard, rounds_of(noisy), 1, 60.0));
  noisy.push_back(150);
  EXPECT_FALSE(settled(standard, rounds_of(noisy), 1, 9.0));
  EXPECT_TRUE(settled(standard, rounds_of(noisy), 1, 10.0));
}

TEST(Settled, AMachineThatSpoilsEveryRoundDoesNotRunForEver) {
  const Protocol& quick = protocol_of(Tier::quick);
  const std::vector<RoundRecord> rounds(6, spoiled(round_of({100})));
  EXPECT_TRUE(settled(quick, rounds, 1, 0.0));
}

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

TEST(Summary, AMedianFarAboveTheMinimumIsNoisy) {
  EXPECT_THAT(summarize(rounds_of({100, 131, 131}), 1).flags, Contains("noisy"));
  EXPECT_THAT(summarize(rounds_of({100, 129, 129}), 1).flags, Not(Contains("noisy")));
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
