#include "harness/run/slowdown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/sim_suite.h"

namespace gpubench {
namespace {

using ::testing::ElementsAre;

TEST(Slowdown, EveryIntervalOfEveryClockBecomesLonger) {
  RoundRecord round;
  round.times.device_ns = {100, 200};
  round.times.wall_ns = {120, 240};
  round.times.ranks = std::vector<RankTimes>{{{100, 160}}, {{80, 200}}};
  slow_down({"gemm", 0.25}, round);
  EXPECT_THAT(round.times.device_ns, ElementsAre(125, 250));
  EXPECT_THAT(round.times.wall_ns, ElementsAre(150, 300));
  EXPECT_THAT((*round.times.ranks)[0].ns, ElementsAre(125, 200));
  EXPECT_THAT((*round.times.ranks)[1].ns, ElementsAre(100, 250));
}

TEST(Slowdown, ConcernsProgramsThatRunTheOpByKindOrLabel) {
  int by_kind = 0, by_label = 0;
  for (const PlannedCase& planned : sim::sim_cases()) {
    const Program program = planned.workload->build(planned.c);
    by_kind += concerns({"gemm", 0.1}, program) ? 1 : 0;
    by_label += concerns({"first.gemm", 0.1}, program) ? 1 : 0;
    EXPECT_FALSE(concerns({"gem", 0.1}, program));
    EXPECT_FALSE(concerns({"", 0.1}, program));
  }
  EXPECT_GT(by_kind, 1);
  EXPECT_LT(by_kind, static_cast<int>(sim::sim_cases().size()));
  EXPECT_EQ(by_label, 1);
}

}  // namespace
}  // namespace gpubench
