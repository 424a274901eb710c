#include "harness/hardware/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "tests/fakes/nvml/fake_nvml.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace nvml_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int not_supported = 3;
constexpr int gpu_is_lost = 15;

std::string failure_of(const std::string& library) {
  return thrown_text<BackendError>([&] { const Nvml nvml(library); }, "loaded");
}

TEST(Nvml, ReadsTheFactsOfADevice) {
  ScriptedNvml fake;
  fake.gpu().processes = {41, 42};
  fake.gpu().links_up = 17;
  const Nvml nvml(fake.path());
  EXPECT_EQ(nvml.driver_version(), "580.65.06");
  EXPECT_EQ(nvml.cuda_version(), 13000);
  EXPECT_THAT(nvml.path(), HasSubstr("today/libnvidia-ml.so.1"));
  ASSERT_EQ(nvml.devices().size(), 1U);
  const GpuFacts facts = nvml.facts(nvml.devices()[0], 0);
  EXPECT_EQ(facts.name, "NVIDIA H200");
  EXPECT_EQ(facts.uuid, "GPU-11111111-2222-3333-4444-555555555555");
  EXPECT_EQ(facts.pci_bus, "00000000:18:00.0");
  EXPECT_EQ(facts.compute_capability, 90);
  EXPECT_EQ(facts.memory_bytes, 150000000000);
  EXPECT_EQ(facts.free_bytes, 149000000000);
  EXPECT_EQ(facts.max_sm_mhz, 1980);
  EXPECT_EQ(facts.max_memory_mhz, 3201);
  EXPECT_EQ(facts.memory_bus_bits, 6144);
  EXPECT_EQ(facts.power_limit_w, 700.0);
  EXPECT_EQ(facts.power_limit_max_w, 700.0);
  EXPECT_EQ(facts.persistence, true);
  EXPECT_EQ(facts.ecc, true);
  EXPECT_EQ(facts.mig, false);
  EXPECT_EQ(facts.corrected_errors, 0);
  EXPECT_EQ(facts.nvlinks, 18);
  EXPECT_EQ(facts.nvlinks_up, 17);
  EXPECT_EQ(facts.pcie_generation, 5);
  EXPECT_EQ(facts.pcie_width_max, 16);
  ASSERT_TRUE(facts.processes.has_value());
  ASSERT_EQ(facts.processes->size(), 2U);
  EXPECT_EQ(facts.processes->at(1).pid, 42);
  EXPECT_EQ(facts.processes->at(1).memory_bytes, 42000000);
}

TEST(Nvml, ReadsMomentaryPowerElseMarksItAsAnAverage) {
  ScriptedNvml fake;
  fake.gpu().power_now_mw = 698250;
  const Nvml nvml(fake.path());
  const GpuReading now = nvml.read(nvml.devices()[0]);
  EXPECT_EQ(now.power_w, 698.25);
  EXPECT_FALSE(now.power_is_average);

  fake.gpu().power_now_mw = ~0U;
  const GpuReading average = nvml.read(nvml.devices()[0]);
  EXPECT_EQ(average.power_w, 650.5);
  EXPECT_TRUE(average.power_is_average);
}

TEST(Nvml, ReadsTheSensorsInWattsJoulesAndMegahertz) {
  ScriptedNvml fake;
  fake.gpu().reasons = 0x44;
  fake.gpu().uncorrected = 2;
  const Nvml nvml(fake.path());
  const GpuReading reading = nvml.read(nvml.devices()[0]);
  EXPECT_EQ(reading.sm_mhz, 1755);
  EXPECT_EQ(reading.memory_mhz, 3201);
  EXPECT_EQ(reading.power_w, 650.5);
  EXPECT_EQ(reading.energy_j, 5000.0);
  EXPECT_EQ(reading.temperature_c, 61);
  EXPECT_EQ(reading.reasons, 0x44U);
  EXPECT_EQ(reading.uncorrected_errors, 2);
}

TEST(Nvml, FindsADeviceByBusIdOrUuid) {
  ScriptedNvml fake;
  fake->gpus.emplace_back();
  fake->gpus[1].uuid = "GPU-other";
  fake->gpus[1].pci_bus = "00000000:3b:00.0";
  const Nvml nvml(fake.path());
  const std::vector<Nvml::Device> all = nvml.devices();
  EXPECT_EQ(nvml.find("00000000:3b:00.0"), all[1]);
  EXPECT_EQ(nvml.find("GPU-11111111-2222-3333-4444-555555555555"), all[0]);
  EXPECT_EQ(nvml.find("GPU-none"), nullptr);
  EXPECT_EQ(nvml.find(""), nullptr);
}

TEST(Nvml, FunctionsMissingInAnOldLibraryGiveNoValue) {
  ScriptedNvml fake("old");
  fake.gpu().reasons = 4;
  const Nvml nvml(fake.path());
  ASSERT_EQ(nvml.devices().size(), 1U);
  const GpuFacts facts = nvml.facts(nvml.devices()[0], 0);
  EXPECT_EQ(facts.name, "NVIDIA H200");
  EXPECT_EQ(facts.power_limit_w, 700.0);
  EXPECT_EQ(facts.now.reasons, 4U);  // under its older name
  EXPECT_EQ(facts.pci_bus, "");
  EXPECT_FALSE(facts.memory_bus_bits.has_value());
  EXPECT_FALSE(facts.mig.has_value());
  EXPECT_FALSE(facts.nvlinks.has_value());
  EXPECT_FALSE(facts.processes.has_value());
  EXPECT_FALSE(facts.now.energy_j.has_value());
}

TEST(Nvml, UnsupportedFunctionsGiveNoValue) {
  ScriptedNvml fake;
  for (const char* function : {"nvmlDeviceGetName",
                               "nvmlDeviceGetUUID",
                               "nvmlDeviceGetPciInfo",
                               "nvmlDeviceGetMemoryInfo",
                               "nvmlDeviceGetCudaComputeCapability",
                               "nvmlDeviceGetClockInfo",
                               "nvmlDeviceGetMaxClockInfo",
                               "nvmlDeviceGetMemoryBusWidth",
                               "nvmlDeviceGetPowerUsage",
                               "nvmlDeviceGetEnforcedPowerLimit",
                               "nvmlDeviceGetPowerManagementLimitConstraints",
                               "nvmlDeviceGetTotalEnergyConsumption",
                               "nvmlDeviceGetTemperature",
                               "nvmlDeviceGetCurrentClocksEventReasons",
                               "nvmlDeviceGetPersistenceMode",
                               "nvmlDeviceGetEccMode",
                               "nvmlDeviceGetTotalEccErrors",
                               "nvmlDeviceGetMigMode",
                               "nvmlDeviceGetNvLinkState",
                               "nvmlDeviceGetCurrPcieLinkGeneration",
                               "nvmlDeviceGetMaxPcieLinkGeneration",
                               "nvmlDeviceGetCurrPcieLinkWidth",
                               "nvmlDeviceGetMaxPcieLinkWidth",
                               "nvmlDeviceGetComputeRunningProcesses",
                               "nvmlSystemGetDriverVersion",
                               "nvmlSystemGetCudaDriverVersion"})
    fake->answers[function] = not_supported;
  const Nvml nvml(fake.path());
  EXPECT_EQ(nvml.driver_version(), "");
  EXPECT_FALSE(nvml.cuda_version().has_value());
  const GpuFacts facts = nvml.facts(nvml.devices()[0], 3);
  EXPECT_EQ(facts.index, 3);
  EXPECT_EQ(facts.name + facts.uuid + facts.pci_bus, "");
  const bool any = facts.compute_capability || facts.memory_bytes || facts.free_bytes || facts.max_sm_mhz ||
                   facts.max_memory_mhz || facts.memory_bus_bits || facts.power_limit_w || facts.power_limit_max_w ||
                   facts.persistence || facts.ecc || facts.mig || facts.corrected_errors || facts.nvlinks ||
                   facts.nvlinks_up || facts.pcie_generation || facts.pcie_generation_max || facts.pcie_width ||
                   facts.pcie_width_max || facts.processes;
  EXPECT_FALSE(any);
  const GpuReading& now = facts.now;
  EXPECT_FALSE(now.sm_mhz || now.memory_mhz || now.power_w || now.energy_j || now.temperature_c || now.reasons ||
               now.uncorrected_errors);
}

TEST(Nvml, PlaceholdersForNoValueGiveNoValue) {
  ScriptedNvml fake;
  fake.gpu().sm_mhz = fake.gpu().power_mw = fake.gpu().temperature_c = fake.gpu().ecc = ~0U;
  fake.gpu().energy_mj = fake.gpu().reasons = fake.gpu().uncorrected = ~std::uint64_t{0};
  fake.gpu().major = 2147483647;
  const Nvml nvml(fake.path());
  const GpuFacts facts = nvml.facts(nvml.devices()[0], 0);
  EXPECT_FALSE(facts.ecc || facts.compute_capability || facts.now.sm_mhz || facts.now.power_w || facts.now.energy_j ||
               facts.now.temperature_c || facts.now.reasons || facts.now.uncorrected_errors);
}

TEST(Nvml, TextWithoutAnEndIsCutAtItsBuffer) {
  ScriptedNvml fake;
  fake->endless_text = true;
  const Nvml nvml(fake.path());
  const GpuFacts facts = nvml.facts(nvml.devices()[0], 0);
  EXPECT_EQ(facts.name, std::string(96, 'x'));
  EXPECT_EQ(facts.pci_bus, std::string(31, 'x'));
  EXPECT_EQ(nvml.driver_version(), std::string(96, 'x'));
}

TEST(Nvml, AnAbsurdNumberOfProcessesOrDevicesIsNotBelieved) {
  ScriptedNvml fake;
  fake.gpu().processes = {7};
  fake->claimed_processes = 4000000000U;
  const Nvml nvml(fake.path());
  const GpuFacts facts = nvml.facts(nvml.devices()[0], 0);
  ASSERT_TRUE(facts.processes.has_value());
  EXPECT_LE(facts.processes->size(), 4104U);
}

TEST(Nvml, ADeviceThatCannotBeOpenedIsNull) {
  ScriptedNvml fake;
  fake->answers["nvmlDeviceGetHandleByIndex"] = gpu_is_lost;
  const Nvml nvml(fake.path());
  EXPECT_THAT(nvml.devices(), ElementsAre(nullptr));
}

TEST(Nvml, StopsWhatItStarted) {
  ScriptedNvml fake;
  {
    const Nvml nvml(fake.path());
    EXPECT_EQ(fake->starts, 1);
    EXPECT_EQ(fake->stops, 0);
  }
  EXPECT_EQ(fake->stops, 1);
}

TEST(Nvml, ReportsWhyItCannotBeUsed) {
  EXPECT_THAT(failure_of("/nonexistent/libnvidia-ml.so.1"), HasSubstr("/nonexistent/libnvidia-ml.so.1"));
  EXPECT_THAT(failure_of(ScriptedNvml("foreign").path()), HasSubstr("it is not NVML"));
  ScriptedNvml fake;
  fake->answers["nvmlInit"] = 9;
  EXPECT_EQ(failure_of(fake.path()), "NVML does not start: nvmlInit returned error 9, Driver Not Loaded");
  fake->answers["nvmlInit"] = 999;
  EXPECT_EQ(failure_of(fake.path()), "NVML does not start: nvmlInit returned error 999");
}

TEST(Nvml, ReportsTheXidsOfADeviceAndNoOtherEvents) {
  ScriptedNvml fake;
  const Nvml nvml(fake.path());
  const Nvml::XidEvents xids = nvml.watch_xids(nvml.devices()[0]);
  fake.gpu().xids = {31, 0, 45};
  EXPECT_THAT(xids(), ElementsAre(31, 45));
  EXPECT_THAT(xids(), IsEmpty());
  fake.gpu().xids.assign(100, 13);
  EXPECT_EQ(xids().size(), 64U);  // at most this many per call
  EXPECT_EQ(xids().size(), 36U);
}

TEST(Nvml, WithoutXidEventsNoneAreWatched) {
  const ScriptedNvml old("old");
  const Nvml without(old.path());
  EXPECT_FALSE(without.watch_xids(without.devices()[0]));
  for (const char* function : {"nvmlEventSetCreate", "nvmlDeviceRegisterEvents"}) {
    ScriptedNvml fake;
    fake->answers[function] = not_supported;
    const Nvml nvml(fake.path());
    EXPECT_FALSE(nvml.watch_xids(nvml.devices()[0])) << function;
  }
}

TEST(ClockReasons, AreWords) {
  EXPECT_THAT(clock_reasons(0), IsEmpty());
  EXPECT_THAT(clock_reasons(0x1FF),
              ElementsAre("idle", "application_clocks", "sw_power_cap", "hw_slowdown", "sync_boost",
                          "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake", "display_clocks"));
  EXPECT_THAT(clock_reasons(std::uint64_t{1} << 63U | 4), ElementsAre("sw_power_cap", "bit 63"));
}

}  // namespace nvml_test
}  // namespace gpubench
