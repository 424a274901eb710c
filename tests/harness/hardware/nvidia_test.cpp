#include "harness/hardware/gpu_survey.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpubench {

namespace nvidia_test {

TEST(CudaFailure, DistinguishesNoDriverOldDriverAndNoDevice) {
  EXPECT_NE(cuda_failure(34, "cuInit").find("no NVIDIA driver"), std::string::npos);
  EXPECT_NE(cuda_failure(35, "cuInit").find("older"), std::string::npos);
  EXPECT_NE(cuda_failure(100, "cuInit").find("sees no device"), std::string::npos);
  EXPECT_NE(cuda_failure(803, "cuInit").find("different versions"), std::string::npos);
  EXPECT_EQ(cuda_failure(999, "cuInit"), "the NVIDIA driver does not start: cuInit returned 999");
}

TEST(ProbeNvidiaDriver, IsUsableWithDevicesOrHasAReason) {
  const NvidiaDriver driver = probe_nvidia_driver();
  EXPECT_EQ(driver.usable, driver.devices > 0);
  EXPECT_EQ(driver.usable, driver.reason.empty());
  EXPECT_TRUE(probe_nvidia_driver("", "libno_such_driver.so").missing);
  EXPECT_FALSE(probe_nvidia_driver("", paths::fake_cuda).missing);
}

TEST(ProbeNvidiaDriver, AnnouncesEachCall) {
  std::vector<std::string> calls;
  (void)probe_nvidia_driver("", paths::fake_cuda, [&](std::string_view call) { calls.emplace_back(call); });
  EXPECT_EQ(calls, (std::vector<std::string>{std::string("dlopen ") + paths::fake_cuda, "cuDriverGetVersion", "cuInit",
                                             "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute", "cuDeviceGet",
                                             "cuDeviceGetAttribute"}));
}

TEST(ProbeNvidiaDriver, ReadsTheComputeCapabilityOfEachDevice) {
  const NvidiaDriver driver = probe_nvidia_driver("", paths::fake_cuda);
  EXPECT_TRUE(driver.usable);
  EXPECT_EQ(driver.devices, 2);
  EXPECT_EQ(driver.capabilities, (std::vector<int>{80, 90}));
}

}  // namespace nvidia_test

namespace gpu_recipes_test {

using ::testing::ElementsAre;

TEST(GpuRecipes, EightBitsNeedAdaOrNewer) {
  EXPECT_THAT(recipes_of_gpu(80), ElementsAre("f64", "f32", "tf32", "bf16", "f16", "bf16_approx_tanh"));
  EXPECT_THAT(recipes_of_gpu(86), ElementsAre("f64", "f32", "tf32", "bf16", "f16", "bf16_approx_tanh"));
  for (const int capability : {89, 90})
    EXPECT_THAT(recipes_of_gpu(capability),
                ElementsAre("f64", "f32", "tf32", "bf16", "f16", "bf16_approx_tanh", "f8_hybrid", "f8_hybrid_fast"));
}

TEST(GpuRecipes, BlockScaledProductsNeedBlackwellOrNewer) {
  EXPECT_EQ(recipes_lacking(90), "mxfp8, nvfp4 need compute capability 10.0; this device has 9.0");
  for (const int capability : {100, 120}) {
    EXPECT_EQ(recipes_of_gpu(capability).size(), recipes().size());
    EXPECT_EQ(recipes_lacking(capability), "");
  }
}

TEST(GpuRecipes, Bf16AndTf32NeedAmpereOrNewer) { EXPECT_THAT(recipes_of_gpu(75), ElementsAre("f64", "f32", "f16")); }

TEST(GpuRecipes, MissingRecipesAreNamedWithTheReason) {
  EXPECT_EQ(
      recipes_lacking(80),
      "f8_hybrid, f8_hybrid_fast need compute capability 8.9; mxfp8, nvfp4 need compute capability 10.0; this device "
      "has 8.0");
  EXPECT_EQ(
      recipes_lacking(75),
      "tf32, bf16, bf16_approx_tanh need compute capability 8.0; f8_hybrid, f8_hybrid_fast need compute capability "
      "8.9; mxfp8, nvfp4 need compute capability 10.0; this device has 7.5");
}

TEST(GpuRecipes, WhereTheCapabilityIsNotKnownNothingIsLeftOut) {
  EXPECT_EQ(recipes_of_gpu(0), recipes_of_gpu(120));
  EXPECT_EQ(recipes_lacking(0), "");
}

}  // namespace gpu_recipes_test

}  // namespace gpubench
