// Programs of several ranks terminate: no order of collectives deadlocks. More ranks than this machine's processors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/error.h"
#include "harness/plan/plan.h"
#include "harness/simulate/simulate.h"
#include "suites/suites.h"

namespace gpubench {
namespace {

/// The first smoke case of each workload that supports this many ranks.
std::vector<PlannedCase> on_ranks(int ranks) {
  std::vector<PlannedCase> all;
  for (const Suite& suite : all_suites()) {
    for (const auto& workload : suite.workloads) {
      const WorkloadInfo info = workload->info();
      if (ranks < info.min_ranks || ranks > info.max_ranks || info.max_ranks < 2) continue;
      Selection selection;
      selection.tier = Tier::large;
      selection.filters = {"^" + suite.name + "/" + info.name + "/"};
      selection.ranks = {ranks};
      std::vector<PlannedCase> declared = declared_cases(all_suites(), selection);
      if (!declared.empty()) all.push_back(std::move(declared.front()));
    }
  }
  return all;
}

TEST(InVirtualTime, EveryProgramOfSeveralRanksEnds) {
  std::set<std::string> workloads;
  int run = 0;
  for (const int ranks : {2, 3, 8, 64}) {
    for (const PlannedCase& planned : on_ranks(ranks)) {
      const Program program = planned.workload->build(planned.c);
      for (const Cluster& cluster : {Cluster{}, Cluster{.ranks_per_node = 1, .slower = {{ranks - 1, 3.0}}},
                                     Cluster{.ranks_per_node = 2, .oversubscription = 4.0}}) {
        const Simulated result = simulate(lanes_of(program, cluster), cluster);
        EXPECT_EQ(result.stuck_reason(), "") << planned.id();
        EXPECT_GT(result.end_s, 0.0) << planned.id();
        for (const SimulatedRank& rank : result.ranks) {
          EXPECT_LE(rank.communication_s + rank.waiting_s, rank.end_s * (1.0 + 1e-9)) << planned.id();
          EXPECT_LE(rank.contention_s, rank.communication_s) << planned.id();
        }
        ++run;
      }
      workloads.insert(planned.c.suite + "/" + planned.c.workload);
    }
  }
  EXPECT_GE(workloads.size(), 8U);
  EXPECT_GE(run, 72);
}

// Two collectives in opposite order on one rank stop all ranks.
TEST(InVirtualTime, TwoCollectivesExchangedOnOneRankGetStuckInEveryTrainingStep) {
  int tried = 0;
  for (const PlannedCase& planned : on_ranks(8)) {
    if (!planned.c.workload.ends_with("_train_step")) continue;
    const Cluster cluster{};
    SimulatedProgram lanes = lanes_of(planned.workload->build(planned.c), cluster);
    std::vector<LaneStep>& of_rank_5 = lanes.ranks[5].communication;
    if (of_rank_5.size() < 2) continue;
    std::swap(of_rank_5[0].work, of_rank_5[1].work);
    std::swap(of_rank_5[0].label, of_rank_5[1].label);
    EXPECT_THAT(simulate(lanes, cluster).stuck_reason(), ::testing::HasSubstr("waiting for rank 5")) << planned.id();
    ++tried;
  }
  EXPECT_GE(tried, 1);
}

}  // namespace
}  // namespace gpubench
