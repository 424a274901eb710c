#include "harness/measure/round_validity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace gpubench {
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
TEST(RoundFault, IsAClockMoreThanAPercentOffWhatItWasLockedAt) {
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

TEST(TelemetryFlags, NameWhatHeldBackTheRoundsThatAreKept) {
  RoundTelemetry errors;
  errors.uncorrected_errors = 1;
  const std::vector<RoundRecord> bad{round_of(saying({"hw_thermal_slowdown"})), round_of(errors),
                                     round_of(saying({"sw_power_cap"})), RoundRecord{}};
  EXPECT_THAT(telemetry_flags(bad), ElementsAre("throttled", "memory errors", "power capped"));
  const std::vector<RoundRecord> good{round_of(saying({"idle"})), round_of(saying({"hw_slowdown"}), false)};
  EXPECT_THAT(telemetry_flags(good), ElementsAre("invalid rounds"));  // what held back a redone round is told there
  EXPECT_THAT(telemetry_flags(std::vector{round_of(saying({"idle"}))}), IsEmpty());
}

TEST(TelemetryFlags, NameAClockThatIsNotWhatItWasLockedAtOrIsNotTold) {
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
