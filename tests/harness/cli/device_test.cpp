#include "harness/cli/device.h"

#include <gtest/gtest.h>

#include "harness/report/json.h"
#include "harness/report/reader.h"

namespace gpubench {
namespace driver_json_test {

template <class Read>
auto back(const Json& json, const Read& read) {
  const Json again = parse_json(dump(json), "test");
  return read({again, "test"});
}

TEST(DriverJson, ADriverComesBackAsItWas) {
  const NvidiaDriver driver{true, 2, 13000, true, true, "", {80, 90}};
  const NvidiaDriver read = back(to_json(driver), driver_from_json);
  EXPECT_TRUE(read.usable);
  EXPECT_EQ(read.devices, 2);
  EXPECT_EQ(read.cuda_version, 13000);
  EXPECT_TRUE(read.hardware_seen && read.missing);
  EXPECT_EQ(read.capabilities, (std::vector<int>{80, 90}));
  EXPECT_EQ(back(to_json(NvidiaDriver{.reason = "why \"not\""}), driver_from_json).reason, "why \"not\"");
}

TEST(DriverJson, WhatIsNotKnownOfAGpuStaysUnknown) {
  GpuSurvey survey;
  survey.driver_version = "580.65.06";
  survey.cuda_version = 13000;
  survey.unresponsive = {1};
  GpuFacts& gpu = survey.gpus.emplace_back();
  gpu.name = "NVIDIA H200";
  gpu.memory_bytes = 150000000000;
  gpu.power_limit_w = 700.5;
  gpu.ecc = false;
  gpu.processes = std::vector<GpuProcess>{{17, std::nullopt}, {18, 5}};
  gpu.now.reasons = std::uint64_t{1} << 63U;
  gpu.now.temperature_c = -5;

  const GpuSurvey read = back(to_json(survey), survey_from_json);

  EXPECT_EQ(read.failure, "");
  EXPECT_EQ(read.driver_version, "580.65.06");
  EXPECT_EQ(read.cuda_version, 13000);
  EXPECT_EQ(read.unresponsive, std::vector<int>{1});
  ASSERT_EQ(read.gpus.size(), 1U);
  EXPECT_EQ(read.gpus[0].name, "NVIDIA H200");
  EXPECT_EQ(read.gpus[0].memory_bytes, 150000000000);
  EXPECT_EQ(read.gpus[0].power_limit_w, 700.5);
  EXPECT_EQ(read.gpus[0].ecc, false);
  EXPECT_EQ(read.gpus[0].mig, std::nullopt);
  EXPECT_EQ(read.gpus[0].free_bytes, std::nullopt);
  ASSERT_TRUE(read.gpus[0].processes);
  ASSERT_EQ(read.gpus[0].processes->size(), 2U);
  EXPECT_EQ(read.gpus[0].processes->at(0).memory_bytes, std::nullopt);
  EXPECT_EQ(read.gpus[0].processes->at(1).memory_bytes, 5);
  EXPECT_EQ(read.gpus[0].now.reasons, std::uint64_t{1} << 63U);
  EXPECT_EQ(read.gpus[0].now.temperature_c, -5);
  EXPECT_EQ(read.gpus[0].now.power_w, std::nullopt);
}

TEST(DriverJson, ADeviceWithNumbersThatAreNoneIsRefused) {
  for (const char* text : {"{}", "[]", "{\"usable\": 1}"}) {
    const Json json = parse_json(text, "test");
    EXPECT_THROW((void)driver_from_json({json, "test"}), ReadError) << text;
  }
}

}  // namespace driver_json_test
}  // namespace gpubench
