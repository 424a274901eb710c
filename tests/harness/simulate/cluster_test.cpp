// How long links take for a collective, by hand from NCCL's figures.
#include "harness/simulate/cluster.h"

#include <gtest/gtest.h>

#include "reference/ops/collective.h"

namespace gpubench {
namespace {

constexpr double micro = 1e-6;

/// Of a message of so many bytes on n ranks: its bytes on the wire are those of reference/ops/collective.h.
Cost all_reduced(double bytes, double n) { return {0.0, 2.0 * (n - 1.0) / n * bytes, bytes}; }
Cost all_gathered(double bytes, double n) { return {0.0, (n - 1.0) / n * bytes, bytes}; }

TEST(Cluster, AnOpIsAsLongAsItsWorkOrItsTrafficAndALaunch) {
  const Cluster cluster{.flop_per_s = 1e12, .bytes_per_s = 1e9, .launch_s = 5e-6};
  EXPECT_DOUBLE_EQ(compute_s(cluster, {.flop = 1e9, .bytes = 1e3}), 1e-3);
  EXPECT_DOUBLE_EQ(compute_s(cluster, {.flop = 1e9, .bytes = 1e7}), 1e-2);
  EXPECT_DOUBLE_EQ(compute_s(cluster, {}), 5e-6);
}

// 8 ranks of a node, 1 GB: 14 steps of 3.4 us and 8.4 us, and 1.75 GB through 450 GB/s. A byte: LL's ring, 14 steps of
// 0.6 us and 6.6 us; its tree has as many, and 6.8.
TEST(Cluster, AnAllReduceInANodeIsARing) {
  const Cluster cluster{};
  EXPECT_NEAR(collective_s(cluster, all_reduce_kind, all_reduced(1e9, 8), RankGroup::first(8)),
              56.0 * micro + 1.75e9 / 450e9, 1e-9);
  EXPECT_NEAR(collective_s(cluster, all_reduce_kind, all_reduced(1.0, 8), RankGroup::first(8)), 15.0 * micro, 1e-9);
}

// 1,024 ranks in 128 nodes, a byte: a ring would take 254 steps between nodes; LL's tree takes 14 in the node of 0.6
// us, 14 between of 5 us, and 6.8 us.
TEST(Cluster, ASmallAllReduceOfManyNodesIsATree) {
  EXPECT_NEAR(collective_s({}, all_reduce_kind, all_reduced(1.0, 1024), RankGroup::first(1024)),
              (14 * 0.6 + 14 * 5.0 + 6.8) * micro, 1e-9);
}

// 16 ranks in two nodes, 8 GB: each link in a node passes on 15 of 16 parts twice, the 8 links between nodes half of
// all twice: 8 / (8 x 50) = 20 ms, less than 33.3 ms within.
TEST(Cluster, BytesLeaveANodeThroughAllItsLinks) {
  const double all = collective_s({}, all_reduce_kind, all_reduced(8e9, 16), RankGroup::first(16));
  EXPECT_NEAR(all, 2.0 * 8e9 * 15.0 / 16.0 / 450e9, 0.2e-3);
  // One rank of each node: all of it through one link.
  const double far = collective_s({}, all_reduce_kind, all_reduced(8e9, 2), RankGroup({0, 8}));
  EXPECT_NEAR(far, 8e9 / 50e9, 0.2e-3);
}

TEST(Cluster, GatheringIsHalfOfReducing) {
  const double reduce = collective_s({}, all_reduce_kind, all_reduced(1e10, 8), RankGroup::first(8));
  const double gather = collective_s({}, all_gather_kind, all_gathered(1e10, 8), RankGroup::first(8));
  EXPECT_NEAR(gather / reduce, 0.5, 1e-3);
}

// 7 steps of 3.4 us and 8.4 us; every rank is passed all of it.
TEST(Cluster, AllOfABroadcastCrossesEachLink) {
  EXPECT_NEAR(collective_s({}, broadcast_kind, {0.0, 1e9, 1e9}, RankGroup::first(8)), 32.2 * micro + 1e9 / 450e9, 1e-9);
}

TEST(Cluster, OneRankHasNothingToWaitFor) {
  EXPECT_EQ(collective_s({}, all_reduce_kind, all_reduced(1e9, 1), RankGroup::first(1)), Cluster{}.launch_s);
}

}  // namespace
}  // namespace gpubench
