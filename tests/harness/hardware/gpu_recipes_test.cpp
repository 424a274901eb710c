#include "harness/hardware/gpu_recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpubench {
namespace gpu_recipes_test {

using ::testing::ElementsAre;

TEST(GpuRecipes, EightBitsNeedAdaOrNewer) {
  EXPECT_THAT(recipes_of_gpu(80), ElementsAre("f64", "f32", "tf32", "bf16", "f16", "bf16_approx_tanh"));
  EXPECT_THAT(recipes_of_gpu(86), ElementsAre("f64", "f32", "tf32", "bf16", "f16", "bf16_approx_tanh"));
  for (const int capability : {89, 90, 100, 120}) {
    EXPECT_THAT(recipes_of_gpu(capability),
                ElementsAre("f64", "f32", "tf32", "bf16", "f16", "bf16_approx_tanh", "f8_hybrid", "f8_hybrid_fast"));
    EXPECT_EQ(recipes_lacking(capability), "");
  }
}

TEST(GpuRecipes, Bf16AndTf32NeedAmpereOrNewer) { EXPECT_THAT(recipes_of_gpu(75), ElementsAre("f64", "f32", "f16")); }

TEST(GpuRecipes, WhatIsLackingIsToldByNameAndWithTheReason) {
  EXPECT_EQ(recipes_lacking(80), "f8_hybrid, f8_hybrid_fast need compute capability 8.9; this device has 8.0");
  EXPECT_EQ(
      recipes_lacking(75),
      "tf32, bf16, bf16_approx_tanh need compute capability 8.0; f8_hybrid, f8_hybrid_fast need compute capability "
      "8.9; this device has 7.5");
}

TEST(GpuRecipes, WhereTheCapabilityIsNotKnownNothingIsLeftOut) {
  EXPECT_EQ(recipes_of_gpu(0), recipes_of_gpu(120));
  EXPECT_EQ(recipes_lacking(0), "");
}

}  // namespace gpu_recipes_test
}  // namespace gpubench
