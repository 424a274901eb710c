#include "harness/hardware/telemetry.h"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>

namespace gpubench {
namespace processor_telemetry_test {

std::unique_ptr<Telemetry> scripted(std::deque<SchedulerReading> readings) {
  return watch_processors([readings]() mutable {
    const SchedulerReading next = readings.front();
    readings.pop_front();
    return next;
  });
}

TEST(WaitingSeconds, AreTheTotalOfSomeTasks) {
  EXPECT_EQ(waiting_seconds("some avg10=1.53 avg60=2.00 avg300=0.10 total=2500000\nfull avg10=0.00 total=7\n"), 2.5);
  EXPECT_EQ(waiting_seconds("some avg10=0.00 avg60=0.00 avg300=0.00 total=0"), 0.0);
}

TEST(WaitingSeconds, OfAnyOtherTextAreNotKnown) {
  for (const char* text : {"", "some", "some avg10=1.0", "full avg10=0.00 total=7", "some avg10=0.00 total=",
                           "some avg10=0.00 total=x", "some avg10=0.00 total=99999999999999999999999"})
    EXPECT_FALSE(waiting_seconds(text).has_value()) << text;
}

TEST(ProcessorTelemetry, IsHowFarTheCountersWentInARound) {
  const auto telemetry = scripted({{10.0, 100, 5.0}, {12.0, 107, 5.5}});
  telemetry->begin_round();
  const std::optional<RoundTelemetry> round = telemetry->end_round();
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(round->readings, 2);
  EXPECT_EQ(round->window_s, 2.0);
  EXPECT_EQ(round->involuntary_switches, 7);
  EXPECT_EQ(round->cpu_pressure, 0.25);  // half a second of two
  EXPECT_TRUE(round->reasons.empty());
  EXPECT_FALSE(round->power_w.has_value());
  EXPECT_FALSE(telemetry->counts_energy());
}

TEST(ProcessorTelemetry, MissingCountersAreEmpty) {
  const auto telemetry = scripted({{1.0, std::nullopt, std::nullopt}, {2.0, 3, 4.0}, {3.0, 3, 4.0}, {3.0, 3, 4.5}});
  telemetry->begin_round();
  const std::optional<RoundTelemetry> round = telemetry->end_round();
  ASSERT_TRUE(round.has_value());
  EXPECT_FALSE(round->involuntary_switches.has_value());
  EXPECT_FALSE(round->cpu_pressure.has_value());
  telemetry->begin_round();
  EXPECT_FALSE(telemetry->end_round()->cpu_pressure.has_value());  // of no time there is no share
}

TEST(ProcessorTelemetry, APressureIsAtMostTheWholeWindow) {
  const auto telemetry = scripted({{1.0, 0, 1.0}, {2.0, 0, 2.01}});
  telemetry->begin_round();
  EXPECT_EQ(telemetry->end_round()->cpu_pressure, 1.0);
}

TEST(ProcessorTelemetry, ARoundThatDidNotBeginHasNone) { EXPECT_FALSE(scripted({})->end_round().has_value()); }

TEST(ProcessorTelemetry, ReadsTheKernelsCounters) {
  const std::string path = ::testing::TempDir() + "processor_telemetry_test.pressure";
  std::ofstream(path) << "some avg10=1.53 avg60=2.00 avg300=0.10 total=1000000\n";
  const SchedulerReading reading = read_scheduler(path);
  EXPECT_EQ(reading.waiting_s, 1.0);
  EXPECT_GE(reading.involuntary_switches.value(), 0);
  std::filesystem::remove(path);
  EXPECT_FALSE(read_scheduler(path).waiting_s.has_value());
}

TEST(ProcessorTelemetry, IsThatOfTheCpu) {
  DeviceInfo cpu;
  cpu.kind = "cpu";
  const std::unique_ptr<Telemetry> telemetry = open_telemetry(cpu);
  telemetry->begin_round();
  const std::optional<RoundTelemetry> round = telemetry->end_round();
  ASSERT_TRUE(round.has_value());
  EXPECT_TRUE(round->involuntary_switches.has_value());
}

}  // namespace processor_telemetry_test
}  // namespace gpubench
