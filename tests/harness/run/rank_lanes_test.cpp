// Splitting a sequence of several ranks into lanes.
#include "harness/run/rank_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/core/error.h"

namespace gpubench {
namespace rank_lanes_test {

using ::testing::ElementsAre;

Launch on(std::vector<int> ranks, const char* label) {
  return std::make_shared<GroupLaunch>(nullptr, RankOp{RankGroup(std::move(ranks)), label});
}

std::vector<std::string> lane(const std::vector<LaneStep>& steps) {
  std::vector<std::string> words;
  for (const LaneStep& step : steps) words.push_back(*step.label + " " + std::to_string(step.waits_for));
  return words;
}

// Ranks 0 to 3 as (dp, tp): each pair of a tp group adds up, then each pair of a dp group.
TEST(RankPrograms, ACollectiveIsInItsMembersLanesOnly) {
  const std::vector<Launch> launches{on({0}, "a0"),     on({1}, "a1"),     on({2}, "a2"),
                                     on({3}, "a3"),     on({0, 1}, "tp0"), on({2, 3}, "tp1"),
                                     on({1, 3}, "dp1"), on({0, 2}, "dp0"), on({3}, "b3")};
  const Schedule schedule{{{}, {}, {}, {}, {0, 1}, {2, 3}, {4, 5}, {4, 5}, {6}}, LaunchMode::stream};
  const std::vector<RankProgram> programs = rank_programs(launches, schedule, 4);

  EXPECT_THAT(lane(programs[0].communication), ElementsAre("tp0 1", "dp0 0"));
  EXPECT_THAT(lane(programs[1].communication), ElementsAre("tp0 1", "dp1 0"));
  EXPECT_THAT(lane(programs[2].communication), ElementsAre("tp1 1", "dp0 0"));
  EXPECT_THAT(lane(programs[3].communication), ElementsAre("tp1 1", "dp1 0"));
  EXPECT_THAT(lane(programs[2].compute), ElementsAre("a2 0"));
  EXPECT_THAT(lane(programs[3].compute), ElementsAre("a3 0", "b3 2"));  // after dp1, the second of its lane
}

// A collective's position differs between its members' lanes.
TEST(RankPrograms, AnOpWaitsForTheCollectivesPlaceInItsOwnLane) {
  const std::vector<Launch> launches{on({0, 2}, "first"), on({0, 1}, "second"), on({0}, "x0"), on({1}, "x1")};
  const Schedule schedule{{{}, {}, {1}, {1}}, LaunchMode::stream};
  const std::vector<RankProgram> programs = rank_programs(launches, schedule, 3);

  EXPECT_THAT(lane(programs[0].compute), ElementsAre("x0 2"));
  EXPECT_THAT(lane(programs[1].compute), ElementsAre("x1 1"));
}

// A member that waited as if no rank computed would block the others.
TEST(RankPrograms, AllMembersKnowThatOneOfTheRanksComputes) {
  const std::vector<Launch> launches{on({0}, "x"), on({0, 1}, "sent")};
  for (const RankProgram& program : rank_programs(launches, {{{}, {0}}, LaunchMode::stream}, 2))
    EXPECT_TRUE(program.overlaps_compute);
  for (const RankProgram& program : rank_programs(std::vector{on({0, 1}, "sent")}, {{{}}, LaunchMode::stream}, 2))
    EXPECT_FALSE(program.overlaps_compute);
}

TEST(RankPrograms, ARankThatIsNotThereIsRefused) {
  EXPECT_THROW((void)rank_programs(std::vector{on({1, 4}, "x")}, {{{}}, LaunchMode::stream}, 4), BackendError);
}

}  // namespace rank_lanes_test
}  // namespace gpubench
