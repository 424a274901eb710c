#include "harness/core/enum_names.h"

#include <gtest/gtest.h>

#include "harness/core/record.h"

namespace gpubench {
namespace {

// The last value shows that no earlier name is missing or superfluous.
TEST(EnumNames, TheLastValueOfEachEnumerationHasTheLastName) {
  EXPECT_EQ(name(DType::u8), "u8");
  EXPECT_EQ(name(Role::scalar), "scalar");
  EXPECT_EQ(name(Memory::peer), "another device's memory");
  EXPECT_EQ(name(Tier::large), "large");
  EXPECT_EQ(name(CacheMode::step), "step");
  EXPECT_EQ(name(LaunchMode::graph), "graph");
  EXPECT_EQ(name(Cadence::isolated), "isolated");
  EXPECT_EQ(name(Choice::pinned), "pinned");
  EXPECT_EQ(name(Verdict::error), "error");
  EXPECT_EQ(enum_values<Verdict>.back(), Verdict::error);
  EXPECT_EQ(enum_values<Verdict>.size(), enum_names<Verdict>.size());
}

TEST(EnumNames, AValueThatIsNoneHasNoName) { EXPECT_THROW((void)name(static_cast<Tier>(4)), std::out_of_range); }

}  // namespace
}  // namespace gpubench
