#include "harness/hardware/gpu_survey.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/backend.h"
#include "tests/fakes/nvml/fake_nvml.h"

namespace gpubench {
namespace gpu_survey_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeviceInfo cuda_device(std::vector<std::pair<std::string, std::string>> properties) {
  DeviceInfo device;
  device.kind = "cuda";
  device.properties = std::move(properties);
  return device;
}

TEST(SurveyGpus, AsksEveryDevice) {
  ScriptedNvml fake;
  fake->gpus.emplace_back();
  fake->gpus[1].name = "NVIDIA L4";
  const GpuSurvey survey = survey_gpus(fake.path());
  EXPECT_EQ(survey.failure, "");
  EXPECT_EQ(survey.driver_version, "580.65.06");
  EXPECT_EQ(survey.cuda_version, 13000);
  EXPECT_THAT(survey.nvml_path, HasSubstr("libnvidia-ml.so.1"));
  ASSERT_EQ(survey.gpus.size(), 2U);
  EXPECT_EQ(survey.gpus[1].index, 1);
  EXPECT_EQ(survey.gpus[1].name, "NVIDIA L4");
  EXPECT_EQ(fake->starts, fake->stops);
}

TEST(SurveyGpus, ReportsFailuresInsteadOfThrowing) {
  EXPECT_THAT(survey_gpus("/nonexistent/libnvidia-ml.so.1").failure, HasSubstr("cannot be loaded"));
  ScriptedNvml fake;
  fake->answers["nvmlInit"] = 9;
  EXPECT_THAT(survey_gpus(fake.path()).failure, HasSubstr("Driver Not Loaded"));
  fake->answers = {{"nvmlDeviceGetHandleByIndex", 15}};
  EXPECT_THAT(survey_gpus(fake.path()).unresponsive, ElementsAre(0));
  EXPECT_TRUE(survey_gpus(fake.path()).gpus.empty());
}

TEST(AddGpuProperties, FillsInMissingProperties) {
  ScriptedNvml fake;
  DeviceInfo device = cuda_device({{"pci_bus_id", fake.gpu().pci_bus}, {"max_sm_mhz", "1234"}});
  add_gpu_properties(device, fake.path());
  EXPECT_EQ(property(device, "uuid"), fake.gpu().uuid);
  EXPECT_EQ(property(device, "max_sm_mhz"), "1234");
  EXPECT_EQ(property(device, "max_memory_mhz"), "3201");
  EXPECT_EQ(property(device, "memory_bus_bits"), "6144");
  EXPECT_EQ(property(device, "power_limit_w"), "700");
  EXPECT_EQ(property(device, "ecc"), "on");
  EXPECT_EQ(property(device, "mig"), "off");
  EXPECT_EQ(property(device, "driver"), "580.65.06");
}

TEST(AddGpuProperties, LeavesOutUnknownProperties) {
  ScriptedNvml fake("old");
  DeviceInfo device = cuda_device({{"uuid", fake.gpu().uuid}});
  add_gpu_properties(device, fake.path());
  EXPECT_EQ(property(device, "memory_bus_bits"), "");
  EXPECT_EQ(property(device, "mig"), "");
  for (const auto& [key, value] : device.properties) EXPECT_NE(value, "") << key;
}

TEST(AddGpuProperties, LeavesOtherDevicesAlone) {
  ScriptedNvml fake;
  DeviceInfo cpu;
  cpu.kind = "cpu";
  cpu.properties = {{"uuid", fake.gpu().uuid}};
  add_gpu_properties(cpu, fake.path());
  EXPECT_EQ(cpu.properties.size(), 1U);
  DeviceInfo unknown = cuda_device({{"uuid", "GPU-none"}});
  add_gpu_properties(unknown, fake.path());
  add_gpu_properties(unknown, "/nonexistent/libnvidia-ml.so.1");
  EXPECT_EQ(unknown.properties.size(), 1U);
}

}  // namespace gpu_survey_test
}  // namespace gpubench
