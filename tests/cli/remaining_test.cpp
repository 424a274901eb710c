// What is left of a run, with times that are told.
#include "harness/cli/remaining.h"

#include <gtest/gtest.h>

namespace gpubench {
namespace {

// Ten cases of 10 s each: 2 s of checking, 8 s of 4 rounds. 100 s in all, 5 s of trust in that.
Remaining ten_cases() {
  std::unordered_map<std::string, ExpectedCase> cases;
  for (int i = 0; i < 10; ++i) cases["c" + std::to_string(i)] = {2.0, 8.0, 4};
  return Remaining(cases);
}

TEST(Remaining, IsTheEstimateAtTheStart) { EXPECT_DOUBLE_EQ(ten_cases().seconds(0.0).value(), 100.0); }

TEST(Remaining, IsTheRestWhereARunTakesWhatWasEstimated) {
  Remaining left = ten_cases();
  for (int i = 0; i < 5; ++i) left.finished("c" + std::to_string(i));
  EXPECT_DOUBLE_EQ(left.seconds(50.0).value(), 50.0);
}

// Half is done after 150 s instead of 50 s: the other half takes nearly three times 50 s, (150 + 5) / (50 + 5) of it.
TEST(Remaining, FollowsTheMachineWhereItIsSlower) {
  Remaining left = ten_cases();
  for (int i = 0; i < 5; ++i) left.finished("c" + std::to_string(i));
  EXPECT_NEAR(left.seconds(150.0).value(), 50.0 * 155.0 / 55.0, 1e-9);
}

// Nine small cases of 1 s finished, and one of 91 s is left. By count a tenth would be left: a second.
TEST(Remaining, CountsCasesByWhatTheyTakeAndNotByTheirNumber) {
  std::unordered_map<std::string, ExpectedCase> cases{{"large", {1.0, 90.0, 3}}};
  for (int i = 0; i < 9; ++i) cases["c" + std::to_string(i)] = {0.5, 0.5, 3};
  Remaining left(cases);
  for (int i = 0; i < 9; ++i) left.finished("c" + std::to_string(i));
  EXPECT_DOUBLE_EQ(left.seconds(9.0).value(), 91.0);
}

// Rounds of all cases are interleaved: no case is finished, and yet half of the work is done. Each has 1 s of checking
// and 2 of its 4 rounds behind it, the third begins: 5 s of 10.
TEST(Remaining, CountsRoundsOfCasesThatAreNotFinished) {
  Remaining left = ten_cases();
  for (int i = 0; i < 10; ++i) {
    const std::string id = "c" + std::to_string(i);
    left.phase(id, "prepare");
    left.phase(id, "check");
    for (int round = 0; round < 3; ++round) left.phase(id, "time");
  }
  EXPECT_DOUBLE_EQ(left.seconds(50.0).value(), 50.0);
  EXPECT_NEAR(left.seconds(100.0).value(), 50.0 * 105.0 / 55.0, 1e-9);
}

// Up to 9 s of each case: rounds beyond those that were expected, and a case that is begun anew, add nothing.
TEST(Remaining, NeverCountsAPartTwice) {
  Remaining left = ten_cases();
  for (int round = 0; round < 20; ++round) left.phase("c0", "time");
  left.phase("c0", "recheck");
  left.phase("c0", "time");
  left.phase("c0", "prepare");
  EXPECT_DOUBLE_EQ(left.seconds(9.0).value(), 91.0);
  left.finished("c0");
  left.finished("c0");
  left.finished("nobody knows it");
  EXPECT_DOUBLE_EQ(left.seconds(10.0).value(), 90.0);
}

TEST(Remaining, IsNothingWithoutAnEstimateAndAtTheEndZero) {
  EXPECT_FALSE(Remaining().seconds(5.0).has_value());
  Remaining left = ten_cases();
  for (int i = 0; i < 10; ++i) left.finished("c" + std::to_string(i));
  EXPECT_EQ(left.seconds(500.0).value(), 0.0);
}

}  // namespace
}  // namespace gpubench
