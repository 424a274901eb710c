// Recipes and attributes: what a case's precision and an op's constants mean.
#include "harness/core/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/attributes.h"
#include "harness/core/error.h"

namespace gpubench {
namespace {

TEST(Recipe, Bf16KeepsStatisticsAndSumsInF32) {
  const Recipe& bf16 = recipe("bf16");
  EXPECT_EQ(bf16.tensor, DType::bf16);
  EXPECT_EQ(bf16.wide, DType::f32);
  EXPECT_EQ(bf16.math.accumulate, DType::f32);
  EXPECT_FALSE(bf16.math.split_k_in_output);
}

TEST(Recipe, AnUnknownNameIsAUsageErrorNamingTheKnownOnes) {
  try {
    (void)recipe("bf17");
    FAIL() << "accepted";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::AllOf(testing::HasSubstr("bf17"), testing::HasSubstr("f32, bf16")));
  }
}

struct Answer {
  int value = 0;
};
std::string describe(const Answer& answer) { return "answer " + std::to_string(answer.value); }
struct Other {};

TEST(Attributes, GiveBackWhatWasStoredAndDescribeIt) {
  const Attributes attributes = Answer{42};
  EXPECT_EQ(attributes.as<Answer>().value, 42);
  EXPECT_EQ(attributes.to_string(), "answer 42");
  EXPECT_EQ(Attributes{}.to_string(), "");
}

TEST(Attributes, AnotherTypeIsAProgramError) {
  const Attributes attributes = Answer{};
  EXPECT_THROW((void)attributes.as<Other>(), ProgramError);
  EXPECT_THROW((void)Attributes{}.as<Answer>(), ProgramError);
}

}  // namespace
}  // namespace gpubench
