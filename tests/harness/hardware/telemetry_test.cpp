#include "harness/hardware/telemetry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/fakes/nvml/fake_nvml.h"

namespace gpubench {
namespace telemetry_test {

using ::testing::ElementsAre;

constexpr std::uint64_t idle = 1;
constexpr std::uint64_t power_cap = 4;

GpuReading reading(int sm_mhz, double power_w, double energy_j, std::uint64_t reasons) {
  GpuReading r;
  r.sm_mhz = sm_mhz;
  r.memory_mhz = 3201;
  r.power_w = power_w;
  r.energy_j = energy_j;
  r.temperature_c = sm_mhz / 30;
  r.reasons = reasons;
  r.uncorrected_errors = 5;
  return r;
}

DeviceInfo cuda_device(std::vector<std::pair<std::string, std::string>> properties) {
  DeviceInfo device;
  device.kind = "cuda";
  device.properties = std::move(properties);
  return device;
}

// The clock of the idle reading before the work (345 MHz) doesn't count; its power and temperature do.
TEST(SummarizeReadings, TakesClocksFromBusyReadingsAndCountersFromTheEnds) {
  std::vector<GpuReading> readings{reading(345, 100.0, 7000.0, idle), reading(1800, 600.0, 7600.0, power_cap),
                                   reading(1740, 650.0, 8300.0, 0), reading(1980, 450.0, 8500.0, 0)};
  readings[3].uncorrected_errors = 6;
  const RoundTelemetry round = summarize_readings(readings, 2.5);
  EXPECT_EQ(round.readings, 4);
  EXPECT_EQ(round.window_s, 2.5);
  ASSERT_TRUE(round.sm_mhz.has_value());
  EXPECT_EQ(round.sm_mhz->min, 1740);
  EXPECT_EQ(round.sm_mhz->median, 1800);
  EXPECT_EQ(round.sm_mhz->max, 1980);
  EXPECT_EQ(round.memory_mhz->median, 3201);
  EXPECT_EQ(round.temperature_c, 66);
  EXPECT_EQ(round.power_w, 450.0);
  EXPECT_EQ(round.energy_j, 1500.0);
  EXPECT_EQ(round.uncorrected_errors, 1);
  EXPECT_THAT(round.reasons, ElementsAre("sw_power_cap"));
}

// Rounds of cases take turns: within a second of its start an average includes the previous round.
TEST(SummarizeReadings, PowerThatIsATrailingAverageIsTakenWhereARoundOutlastsIt) {
  std::vector<GpuReading> readings{reading(1800, 300.0, 7000.0, 0), reading(1800, 500.0, 7300.0, 0),
                                   reading(1800, 600.0, 7900.0, 0)};
  for (GpuReading& one : readings) one.power_is_average = true;
  EXPECT_FALSE(summarize_readings(readings, 0.9).power_w.has_value());
  EXPECT_EQ(summarize_readings(readings, 1.5).power_w, 600.0);
}

TEST(SummarizeReadings, EnergyOfAShortWindowIsNotKnown) {
  const std::vector<GpuReading> readings{reading(1800, 600.0, 7000.0, 0), reading(1800, 600.0, 8000.0, 0)};
  EXPECT_FALSE(summarize_readings(readings, 1.99).energy_j.has_value());
  EXPECT_EQ(summarize_readings(readings, 2.0).energy_j, 1000.0);
}

TEST(SummarizeReadings, ACounterThatWasResetIsNotKnown) {
  const std::vector<GpuReading> readings{reading(1800, 600.0, 7000.0, 0), reading(1800, 600.0, 10.0, 0)};
  EXPECT_FALSE(summarize_readings(readings, 3.0).energy_j.has_value());
}

TEST(SummarizeReadings, QuantitiesWithoutReadingsAreEmpty) {
  const std::vector<GpuReading> readings(3);
  const RoundTelemetry round = summarize_readings(readings, 3.0);
  EXPECT_EQ(round.readings, 3);
  EXPECT_FALSE(round.sm_mhz || round.memory_mhz || round.temperature_c || round.power_w || round.energy_j ||
               round.uncorrected_errors);
  EXPECT_TRUE(round.reasons.empty());
  EXPECT_EQ(summarize_readings({}, 0.0).readings, 0);
}

TEST(SummarizeReadings, ADeviceThatWasAlwaysIdleHasThatReason) {
  const std::vector<GpuReading> readings(2, reading(345, 100.0, 1.0, idle));
  EXPECT_THAT(summarize_readings(readings, 0.1).reasons, ElementsAre("idle"));
  EXPECT_EQ(summarize_readings(readings, 0.1).sm_mhz->median, 345);
}

// Waits for the expected event, not for a time.
TEST(PollSensors, ReadsBeforeAfterAndInBetweenOnlyWhileARoundRuns) {
  std::atomic<int> reads{0};
  const auto telemetry = poll_sensors(
      [&] {
        ++reads;
        return reading(1800, 600.0, 1.0, 0);
      },
      {}, 0.0005);
  EXPECT_EQ(reads, 0);
  telemetry->begin_round();
  while (reads < 5) std::this_thread::yield();
  const auto round = telemetry->end_round();
  const int after = reads;
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(round->readings, after);
  EXPECT_GT(round->window_s, 0.0);
  telemetry->begin_round();
  const auto next = telemetry->end_round();
  EXPECT_EQ(next->readings, reads - after);
  EXPECT_GE(next->readings, 2);
  EXPECT_FALSE(telemetry->end_round().has_value());
}

TEST(OpenTelemetry, FindsACudaDeviceByItsUuidOrBusId) {
  ScriptedNvml fake;
  for (const auto& [key, id] : {std::pair("uuid", fake.gpu().uuid), std::pair("pci_bus_id", fake.gpu().pci_bus)}) {
    const auto telemetry = open_telemetry(cuda_device({{key, id}}), fake.path());
    telemetry->begin_round();
    const auto round = telemetry->end_round();
    ASSERT_TRUE(round.has_value()) << key;
    EXPECT_EQ(round->sm_mhz->median, 1755);
    EXPECT_EQ(round->uncorrected_errors, 0);
  }
  EXPECT_EQ(fake->starts, fake->stops);
}

TEST(OpenTelemetry, CriticalErrorsOfTheDriverAreTakenOnce) {
  ScriptedNvml fake;
  {
    const auto telemetry = open_telemetry(cuda_device({{"uuid", fake.gpu().uuid}}), fake.path());
    EXPECT_THAT(telemetry->take_errors(), ElementsAre());
    fake.gpu().xids = {79, 155};
    EXPECT_THAT(telemetry->take_errors(), ElementsAre("Xid 79 (GPU has fallen off the bus)", "Xid 155"));
    EXPECT_THAT(telemetry->take_errors(), ElementsAre());
  }
  EXPECT_EQ(fake->event_sets, 0);
}

TEST(OpenTelemetry, ErrorsOfTheMemoryAreCountedOfBothKinds) {
  ScriptedNvml fake;
  const auto telemetry = open_telemetry(cuda_device({{"uuid", fake.gpu().uuid}}), fake.path());
  EXPECT_EQ(telemetry->memory_errors().corrected, 0);
  fake.gpu().corrected = 7;
  fake.gpu().uncorrected = 2;
  EXPECT_EQ(telemetry->memory_errors().corrected, 7);
  EXPECT_EQ(telemetry->memory_errors().uncorrected, 2);
  EXPECT_FALSE(NoTelemetry().memory_errors().corrected.has_value());
}

TEST(OpenTelemetry, IsNoneForOtherDevicesAndWithoutNvml) {
  ScriptedNvml fake;
  const auto none = [](const std::unique_ptr<Telemetry>& telemetry) {
    telemetry->begin_round();
    return !telemetry->end_round().has_value();
  };
  DeviceInfo other;
  other.kind = "sim";
  EXPECT_TRUE(none(open_telemetry(other, fake.path())));
  EXPECT_EQ(fake->starts, 0);
  EXPECT_TRUE(none(open_telemetry(cuda_device({{"uuid", "GPU-none"}}), fake.path())));
  EXPECT_TRUE(none(open_telemetry(cuda_device({}), fake.path())));
  EXPECT_TRUE(none(open_telemetry(cuda_device({{"uuid", fake.gpu().uuid}}), "/nonexistent/libnvidia-ml.so.1")));
}

}  // namespace telemetry_test
}  // namespace gpubench
