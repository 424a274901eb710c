#include "harness/hardware/nvidia.h"

#include <gtest/gtest.h>

namespace gpubench {
namespace nvidia_test {

TEST(CudaFailure, TellsNoDriverFromOldDriverFromNoDevice) {
  EXPECT_NE(cuda_failure(34, "cuInit").find("no NVIDIA driver"), std::string::npos);
  EXPECT_NE(cuda_failure(35, "cuInit").find("older"), std::string::npos);
  EXPECT_NE(cuda_failure(100, "cuInit").find("sees no device"), std::string::npos);
  EXPECT_NE(cuda_failure(803, "cuInit").find("different versions"), std::string::npos);
  EXPECT_EQ(cuda_failure(999, "cuInit"), "the NVIDIA driver does not start: cuInit answers 999");
}

TEST(ProbeNvidiaDriver, IsUsableWithDevicesOrSaysWhyNot) {
  const NvidiaDriver driver = probe_nvidia_driver();
  EXPECT_EQ(driver.usable, driver.devices > 0);
  EXPECT_EQ(driver.usable, driver.reason.empty());
}

TEST(ProbeNvidiaDriver, SaysEachCallBeforeItMakesIt) {
  std::vector<std::string> calls;
  (void)probe_nvidia_driver("", GPUBENCH_FAKE_CUDA, [&](std::string_view call) { calls.emplace_back(call); });
  EXPECT_EQ(calls, (std::vector<std::string>{std::string("dlopen ") + GPUBENCH_FAKE_CUDA, "cuDriverGetVersion",
                                             "cuInit", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute",
                                             "cuDeviceGet", "cuDeviceGetAttribute"}));
}

TEST(ProbeNvidiaDriver, TellsTheComputeCapabilityOfEachDevice) {
  const NvidiaDriver driver = probe_nvidia_driver("", GPUBENCH_FAKE_CUDA);
  EXPECT_TRUE(driver.usable);
  EXPECT_EQ(driver.devices, 2);
  EXPECT_EQ(driver.capabilities, (std::vector<int>{80, 90}));
}

}  // namespace nvidia_test
}  // namespace gpubench
