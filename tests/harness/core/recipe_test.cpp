#include "harness/core/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"
#include "tests/thrown_text.h"

namespace gpubench {
namespace {

TEST(Recipe, Bf16KeepsStatisticsAndSumsInF32) {
  const Recipe& bf16 = recipe("bf16");
  EXPECT_EQ(bf16.tensor, DType::bf16);
  EXPECT_EQ(bf16.wide, DType::f32);
  EXPECT_EQ(bf16.math.accumulate, DType::f32);
  EXPECT_FALSE(bf16.math.split_k_in_output);
}

TEST(Recipe, MixedPrecisionKeepsF32SumsAndMasters) {
  for (const char* name : {"bf16", "f16", "f8_hybrid"}) {
    EXPECT_EQ(recipe(name).wide, DType::f32) << name;
    EXPECT_EQ(recipe(name).math, Math{}) << name;
    EXPECT_EQ(size_of(recipe(name).tensor), 2U) << name;
  }
  EXPECT_EQ(recipe("f64").wide, DType::f64);
  EXPECT_EQ(recipe("f64").math.accumulate, DType::f64);
}

TEST(Recipe, Tf32KeepsF32TensorsAndRoundsWhatProductsRead) {
  EXPECT_EQ(recipe("tf32").tensor, DType::f32);
  EXPECT_EQ(recipe("tf32").math.inputs, Math::Inputs::tf32);
  EXPECT_EQ(recipe("f32").math.inputs, Math::Inputs::exact);
}

TEST(Recipe, EightBitRecipesQuantizeOnlyOperandsOfProducts) {
  const Recipe& f8 = recipe("f8_hybrid");
  EXPECT_EQ(f8.tensor, DType::bf16);
  EXPECT_EQ(f8.operand, DType::f8_e4m3);
  EXPECT_EQ(f8.gradient_operand, DType::f8_e5m2);
  EXPECT_FALSE(f8.math.fast_accumulation);
  EXPECT_TRUE(recipe("f8_hybrid_fast").math.fast_accumulation);
  for (const Recipe& r : recipes()) {
    EXPECT_EQ(r.quantizes(), bits_of(r.operand) <= 8) << r.name;
    EXPECT_EQ(r.quantizes(), r.gradient_operand != r.tensor) << r.name;
    EXPECT_EQ(r.block, r.name == "mxfp8" ? 32 : r.name == "nvfp4" ? 16 : 0) << r.name;
  }
}

TEST(Recipe, OnlyOneRecipeHasAnApproximateTanh) {
  Math declared = recipe("bf16").math;
  declared.approximate_tanh = true;
  EXPECT_EQ(recipe("bf16_approx_tanh").math, declared);
  EXPECT_EQ(recipe("bf16_approx_tanh").tensor, DType::bf16);
  for (const Recipe& r : recipes()) EXPECT_EQ(r.math.approximate_tanh, r.name == "bf16_approx_tanh") << r.name;
}

TEST(Recipe, AnUnknownNameIsAUsageErrorNamingTheKnownOnes) {
  EXPECT_THAT(thrown_text<UsageError>([&] { (void)recipe("bf17"); }),
              testing::AllOf(testing::HasSubstr("bf17"), testing::HasSubstr("f32, bf16")));
}

}  // namespace
}  // namespace gpubench
