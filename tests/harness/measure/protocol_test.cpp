#include "harness/measure/protocol.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/harness/measure/made_rounds.h"

namespace gpubench {

namespace protocol_test {

constexpr std::int64_t mib = 1 << 20;
constexpr std::int64_t gib = 1 << 30;

TEST(Protocol, PresetsAreThoseOfTheMeasurementRules) {
  const Protocol& minimal = protocol_of(Preset::minimal);
  EXPECT_EQ(minimal.min_rounds, 3);
  EXPECT_EQ(minimal.max_rounds, 10);
  EXPECT_EQ(minimal.samples, 3);
  EXPECT_EQ(minimal.half_width, 0.2);
  EXPECT_EQ(minimal.min_sample_s, 200e-6);
  EXPECT_EQ(minimal.first_warmup_calls, 1);
  const Protocol& brief = protocol_of(Preset::brief);
  EXPECT_EQ(brief.min_rounds, 3);
  EXPECT_EQ(brief.max_rounds, 10);
  EXPECT_EQ(brief.samples, 5);
  EXPECT_EQ(brief.half_width, 0.2);
  EXPECT_EQ(brief.min_sample_s, 500e-6);
  const Protocol& normal = protocol_of(Preset::normal);
  EXPECT_EQ(normal.min_rounds, 10);
  EXPECT_EQ(normal.max_rounds, 20);
  EXPECT_EQ(normal.samples, 10);
  EXPECT_EQ(normal.half_width, 0.005);
  const Protocol& gate = protocol_of(Preset::gate);
  EXPECT_EQ(gate.min_rounds, 5);
  EXPECT_EQ(gate.max_rounds, 10);
  EXPECT_EQ(gate.samples, 10);
  EXPECT_EQ(gate.half_width, 0.005);
  EXPECT_EQ(gate.budget_s, 5.0);
  const Protocol& thorough = protocol_of(Preset::thorough);
  EXPECT_EQ(thorough.min_rounds, 20);
  EXPECT_EQ(thorough.max_rounds, 40);
  EXPECT_EQ(thorough.samples, 20);
  EXPECT_EQ(thorough.half_width, 0.0025);
  EXPECT_EQ(thorough.budget_s, 60.0);
}

TEST(Protocol, EachTierHasAPreset) {
  EXPECT_EQ(preset_of(Tier::smoke), Preset::minimal);
  EXPECT_EQ(preset_of(Tier::quick), Preset::brief);
  EXPECT_EQ(preset_of(Tier::standard), Preset::normal);
  EXPECT_EQ(preset_of(Tier::large), Preset::normal);
  EXPECT_EQ(name(Preset::thorough), "thorough");
}

// T_min is 500 us: 90 us need 5.6 runs, 6 rounded up to 8.
TEST(Protocol, ABatchFillsTheMinimumTimeAndIsAPowerOfTwo) {
  const Protocol& brief = protocol_of(Preset::brief);
  EXPECT_EQ(batch_for(brief, CacheMode::cold, 90e-6), 8);
  EXPECT_EQ(batch_for(brief, CacheMode::cold, 250e-6), 2);
  EXPECT_EQ(batch_for(brief, CacheMode::warm, 500e-6), 1);
  EXPECT_EQ(batch_for(brief, CacheMode::cold, 3.0), 1);
  EXPECT_EQ(batch_for(brief, CacheMode::cold, 1e-9), 4096);
  EXPECT_EQ(batch_for(brief, CacheMode::cold, 0.0), 4096);
}

TEST(Protocol, AStepIsTimedOneByOne) { EXPECT_EQ(batch_for(protocol_of(Preset::brief), CacheMode::step, 1e-6), 1); }

// 1 s for 3 rounds: 3 samples of 50 ms fit into a sixth of it, 1 of 100 ms, and none of 2 s.
TEST(Protocol, ASlowCaseOfTheQuickTierHasFewerSamples) {
  const Protocol& brief = protocol_of(Preset::brief);
  EXPECT_EQ(samples_for(brief, 1, 1e-3), 5);
  EXPECT_EQ(samples_for(brief, 1, 0.050), 3);
  EXPECT_EQ(samples_for(brief, 50, 1e-3), 3);
  EXPECT_EQ(samples_for(brief, 1, 0.100), 1);
  EXPECT_EQ(samples_for(brief, 1, 2.0), 1);
  EXPECT_EQ(samples_for(brief, 1, 0.0), 5);
}

// A round warms up for 5 ms, unnecessary for a run of 100 ms; presets of many rounds always run 3 times.
TEST(Protocol, ALongRunOfTheQuickTierNeedsNoWarmUp) {
  const Protocol& brief = protocol_of(Preset::brief);
  EXPECT_EQ(warmup_calls_for(brief, 1e-3), 5);
  EXPECT_EQ(warmup_calls_for(brief, 0.099), 1);
  EXPECT_EQ(warmup_calls_for(brief, 0.100), 0);
  EXPECT_EQ(warmup_calls_for(protocol_of(Preset::normal), 100.0), 3);
  EXPECT_EQ(warmup_calls_for(protocol_of(Preset::gate), 1e-9), 1'000'000);
}

TEST(Protocol, AnOpThatIsTimedAloneIsRunOnceIfItIsLong) {
  EXPECT_EQ(samples_alone(protocol_of(Preset::brief), 1e-6), 1);
  EXPECT_EQ(samples_alone(protocol_of(Preset::normal), 1e-6), 3);
  EXPECT_EQ(samples_alone(protocol_of(Preset::normal), 4.9e-3), 3);
  EXPECT_EQ(samples_alone(protocol_of(Preset::normal), 5e-3), 0);
}

// A gate needs at least 5 samples per round for its verdicts.
TEST(Protocol, OtherPresetsTakeAllTheirSamplesHoweverSlow) {
  EXPECT_EQ(samples_for(protocol_of(Preset::gate), 1, 100.0), 10);
  EXPECT_EQ(samples_for(protocol_of(Preset::normal), 1, 100.0), 10);
  EXPECT_EQ(samples_for(protocol_of(Preset::thorough), 1, 100.0), 20);
}

// 0.12 s of a smoke case correspond to 0.48 GiB.
TEST(Protocol, CasesWithASmallBudgetShareLittleMemory) {
  EXPECT_EQ(group_bytes_for(protocol_of(Preset::minimal), 100 * gib), static_cast<std::int64_t>(0.48 * gib));
  EXPECT_EQ(group_bytes_for(protocol_of(Preset::brief), 100 * gib), 2 * gib);
  EXPECT_EQ(group_bytes_for(protocol_of(Preset::thorough), 100 * gib), 2 * gib);
  EXPECT_EQ(group_bytes_for(protocol_of(Preset::brief), gib), gib / 2);
}

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

TEST(Settled, QuickStopsAfterThreeValidRoundsThatAgree) {
  const Protocol& brief = protocol_of(Preset::brief);
  std::vector<RoundRecord> rounds = rounds_of({100, 100});
  EXPECT_FALSE(settled(brief, rounds, 1, 0.0));
  rounds.push_back(spoiled(round_of({900})));
  EXPECT_FALSE(settled(brief, rounds, 1, 0.0));
  rounds.push_back(round_of({100}));
  EXPECT_TRUE(settled(brief, rounds, 1, 0.0));
}

// Logs alternate between 0 and d = 0.262. Of 3: sd 0.1515, half-width 4.303 sd / sqrt(3) = 0.376; of 4: sd d / sqrt(3)
// = 0.1515, 3.182 sd / 2 = 0.241; of 5: sd 0.1437, 2.776 sd / sqrt(5) = 0.178, below 0.2.
TEST(Settled, QuickGoesOnUntilTheTimingIsReliable) {
  const Protocol& brief = protocol_of(Preset::brief);
  EXPECT_FALSE(settled(brief, rounds_of({100, 130, 100}), 1, 0.0));
  EXPECT_FALSE(settled(brief, rounds_of({100, 130, 100, 130}), 1, 0.0));
  EXPECT_TRUE(settled(brief, rounds_of({100, 130, 100, 130, 100}), 1, 0.0));
  EXPECT_TRUE(settled(brief, rounds_of({100, 130, 100}), 1, 1.0));
  std::vector<double> wild;
  for (int i = 0; i < 9; ++i) wild.push_back(i % 2 == 0 ? 100.0 : 900.0);
  EXPECT_FALSE(settled(brief, rounds_of(wild), 1, 0.0));
  wild.push_back(100.0);
  EXPECT_TRUE(settled(brief, rounds_of(wild), 1, 0.0));
}

TEST(Settled, StandardStopsAtTenRoundsWhenTheyAgreeAndAtTwentyAnyhow) {
  const Protocol& normal = protocol_of(Preset::normal);
  EXPECT_FALSE(settled(normal, rounds_of(std::vector<double>(9, 100.0)), 1, 0.0));
  EXPECT_TRUE(settled(normal, rounds_of(std::vector<double>(10, 100.0)), 1, 0.0));
  std::vector<double> noisy;
  for (int i = 0; i < 19; ++i) noisy.push_back(i % 2 == 0 ? 100.0 : 120.0);
  EXPECT_FALSE(settled(normal, rounds_of(noisy), 1, 0.0));
  noisy.push_back(100.0);
  EXPECT_TRUE(settled(normal, rounds_of(noisy), 1, 0.0));
}

// Ten rounds, half at 100 and half at 100 (1 + d): the log medians have sd = (d/2) sqrt(10/9), so the half-width is
// 2.262 sd / sqrt(10) = 0.377 d; epsilon 0.005 lies between d = 0.013 and d = 0.0135.
TEST(Settled, StandardStopsWhenTheHalfWidthIsHalfAPercent) {
  const Protocol& normal = protocol_of(Preset::normal);
  const auto spread = [](double d) {
    std::vector<double> medians;
    for (int i = 0; i < 10; ++i) medians.push_back(i % 2 == 0 ? 100.0 : 100.0 * std::exp(d));
    return rounds_of(medians);
  };
  EXPECT_TRUE(settled(normal, spread(0.0130), 1, 0.0));
  EXPECT_FALSE(settled(normal, spread(0.0135), 1, 0.0));
}

TEST(Settled, TheBudgetEndsACaseOnceItHasItsFewestRounds) {
  const Protocol& normal = protocol_of(Preset::normal);
  std::vector<double> noisy{100, 150, 100, 150, 100, 150, 100, 150, 100};
  EXPECT_FALSE(settled(normal, rounds_of(noisy), 1, 60.0));
  noisy.push_back(150);
  EXPECT_FALSE(settled(normal, rounds_of(noisy), 1, 9.0));
  EXPECT_TRUE(settled(normal, rounds_of(noisy), 1, 10.0));
}

TEST(Settled, AMachineThatInvalidatesEveryRoundEndsTheCase) {
  const Protocol& brief = protocol_of(Preset::brief);
  std::vector<RoundRecord> rounds(5, spoiled(round_of({100})));
  EXPECT_FALSE(settled(brief, rounds, 1, 0.0));
  rounds.push_back(spoiled(round_of({100})));
  EXPECT_TRUE(settled(brief, rounds, 1, 0.0));
}

}  // namespace protocol_test

namespace round_validity_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

RoundTelemetry saying(std::vector<std::string> reasons) {
  RoundTelemetry telemetry;
  telemetry.reasons = std::move(reasons);
  return telemetry;
}

RoundRecord round_of(const RoundTelemetry& telemetry, bool valid = true) {
  RoundRecord round;
  round.valid = valid;
  round.telemetry = telemetry;
  return round;
}

RoundRecord window(double seconds, std::optional<double> joules) {
  RoundTelemetry telemetry;
  telemetry.window_s = seconds;
  telemetry.energy_j = joules;
  return round_of(telemetry);
}

TEST(RoundFault, IsASlowdownByHardwareHeatOrPowerBrake) {
  for (const char* reason : {"hw_slowdown", "hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake"})
    EXPECT_EQ(round_fault(saying({"idle", reason})), reason);
  EXPECT_EQ(round_fault(saying({"hw_power_brake", "hw_slowdown"})), "hw_slowdown, hw_power_brake");
}

TEST(RoundFault, IsANewUncorrectedMemoryError) {
  RoundTelemetry telemetry;
  telemetry.uncorrected_errors = 0;
  EXPECT_EQ(round_fault(telemetry), "");
  telemetry.uncorrected_errors = 1;
  EXPECT_EQ(round_fault(telemetry), "1 uncorrected memory error");
  telemetry.reasons = {"hw_slowdown"};
  telemetry.uncorrected_errors = 2;
  EXPECT_EQ(round_fault(telemetry), "hw_slowdown, 2 uncorrected memory errors");
}

RoundTelemetry clocked(double median_mhz) {
  RoundTelemetry telemetry;
  telemetry.sm_mhz = Spread{210, median_mhz, 1980};
  return telemetry;
}

// 1% of 1500 MHz are 15.
TEST(RoundFault, IsAClockMoreThanAPercentOffTheLockedOne) {
  EXPECT_EQ(round_fault(clocked(1485.0), 1500), "");
  EXPECT_EQ(round_fault(clocked(1515.0), 1500), "");
  EXPECT_EQ(round_fault(clocked(1484.0), 1500), "SM clock at 1484 MHz, locked at 1500");
  EXPECT_EQ(round_fault(clocked(1516.0), 1500), "SM clock at 1516 MHz, locked at 1500");
  EXPECT_EQ(round_fault(clocked(std::nan("")), 1500), "SM clock at nan MHz, locked at 1500");
  EXPECT_EQ(round_fault(clocked(300.0)), "");
  RoundTelemetry hot = clocked(900.0);
  hot.reasons = {"hw_slowdown"};
  EXPECT_EQ(round_fault(hot, 1500), "hw_slowdown, SM clock at 900 MHz, locked at 1500");
}

TEST(RoundFault, IsNoneForHowTheDeviceIsSetUp) {
  EXPECT_EQ(round_fault({}), "");
  EXPECT_EQ(
      round_fault(saying({"idle", "application_clocks", "sw_power_cap", "sync_boost", "display_clocks", "bit 12"})),
      "");
}

TEST(TelemetryFlags, NameTheThrottlingOfKeptRounds) {
  RoundTelemetry errors;
  errors.uncorrected_errors = 1;
  const std::vector<RoundRecord> bad{round_of(saying({"hw_thermal_slowdown"})), round_of(errors),
                                     round_of(saying({"sw_power_cap"})), RoundRecord{}};
  EXPECT_THAT(telemetry_flags(bad), ElementsAre("throttled", "memory errors", "power capped"));
  const std::vector<RoundRecord> good{round_of(saying({"idle"})), round_of(saying({"hw_slowdown"}), false)};
  EXPECT_THAT(telemetry_flags(good), ElementsAre("invalid rounds"));  // the reason is in the redone round
  EXPECT_THAT(telemetry_flags(std::vector{round_of(saying({"idle"}))}), IsEmpty());
}

TEST(TelemetryFlags, NameAClockOffTheLockedOneOrUnknown) {
  const std::vector<RoundRecord> held{round_of(clocked(1500.0)), round_of(clocked(1400.0), false)};
  EXPECT_THAT(telemetry_flags(held, 1500), ElementsAre("invalid rounds"));
  const std::vector<RoundRecord> off{round_of(clocked(1500.0)), round_of(clocked(1400.0))};
  EXPECT_THAT(telemetry_flags(off, 1500), ElementsAre("clock off"));
  EXPECT_THAT(telemetry_flags(off), IsEmpty());
  const std::vector<RoundRecord> silent{round_of(clocked(1500.0)), round_of({})};
  EXPECT_THAT(telemetry_flags(silent, 1500), ElementsAre("clock unknown"));
  EXPECT_THAT(telemetry_flags(std::vector{RoundRecord{}}, 1500), ElementsAre("clock unknown"));
  EXPECT_THAT(telemetry_flags(silent), IsEmpty());
}

// 1200 J and 1500 J in 2 s and 2.5 s are 600 W; a run of 4 ms takes 2.4 J of that.
TEST(EnergyPerRun, IsMeanPowerTimesTheMedianTime) {
  const std::vector<RoundRecord> rounds{window(2.0, 1200.0), window(2.5, 1500.0), window(0.1, std::nullopt)};
  EXPECT_DOUBLE_EQ(energy_per_run_j(rounds, 4e6).value(), 2.4);
}

TEST(EnergyPerRun, IsNotKnownWithoutALongWindow) {
  const std::vector<RoundRecord> rounds{window(0.1, std::nullopt), RoundRecord{}};
  EXPECT_FALSE(energy_per_run_j(rounds, 4e6).has_value());
}

}  // namespace round_validity_test

}  // namespace gpubench
