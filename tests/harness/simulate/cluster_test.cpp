// Times of collectives, computed by hand from NCCL's constants.
#include "harness/simulate/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "reference/ops/collective.h"
#include "reference/ops/token_exchange.h"
#include "tests/harness/simulate/lanes.h"

namespace gpubench {
namespace {

constexpr double micro = 1e-6;

/// Cost of a message of `bytes` on n ranks; wire bytes as in reference/ops/collective.h.
Cost all_reduced(double bytes, double n) { return {0.0, 2.0 * (n - 1.0) / n * bytes, bytes}; }
Cost all_gathered(double bytes, double n) { return {0.0, (n - 1.0) / n * bytes, bytes}; }

TEST(Cluster, AnOpTakesTheMaximumOfFlopTimeMemoryTimeAndLaunch) {
  const Cluster cluster{.flop_per_s = 1e12, .bytes_per_s = 1e9, .launch_s = 5e-6};
  EXPECT_DOUBLE_EQ(compute_s(cluster, {.flop = 1e9, .bytes = 1e3}), 1e-3);
  EXPECT_DOUBLE_EQ(compute_s(cluster, {.flop = 1e9, .bytes = 1e7}), 1e-2);
  EXPECT_DOUBLE_EQ(compute_s(cluster, {}), 5e-6);
}

// 8 ranks of a node, 1 GB: 8.4 us, 14 steps of 3.4 us, and 1.75 GB at 450 GB/s. A byte: LL ring, 6.6 us and 14 steps of
// 0.6 us; its tree has 6.8 us and the same steps.
TEST(Cluster, AnAllReduceInANodeIsARing) {
  const Cluster cluster{};
  EXPECT_NEAR(collective_s(cluster, all_reduce_kind, all_reduced(1e9, 8), RankGroup::first(8)),
              56.0 * micro + 1.75e9 / 450e9, 1e-9);
  EXPECT_NEAR(collective_s(cluster, all_reduce_kind, all_reduced(1.0, 8), RankGroup::first(8)), 15.0 * micro, 1e-9);
}

// 1,024 ranks in 128 nodes, a byte: a ring has 254 steps between nodes; the LL tree takes 6.8 us, 14 steps of 0.6 us in
// the node and 14 of 5 us between nodes.
TEST(Cluster, ASmallAllReduceOfManyNodesIsATree) {
  EXPECT_NEAR(collective_s({}, all_reduce_kind, all_reduced(1.0, 1024), RankGroup::first(1024)),
              (14 * 0.6 + 14 * 5.0 + 6.8) * micro, 1e-9);
}

// 16 ranks in two nodes, 8 GB: each link in a node carries 15 of 16 parts twice, 33.3 ms; the 8 links between nodes
// carry half of all bytes twice, 8 / (8 x 50) = 20 ms.
TEST(Cluster, BytesLeaveANodeThroughAllItsLinks) {
  const double all = collective_s({}, all_reduce_kind, all_reduced(8e9, 16), RankGroup::first(16));
  EXPECT_NEAR(all, 2.0 * 8e9 * 15.0 / 16.0 / 450e9, 0.2e-3);
  // One rank per node: all bytes use one link.
  const double far = collective_s({}, all_reduce_kind, all_reduced(8e9, 2), RankGroup({0, 8}));
  EXPECT_NEAR(far, 8e9 / 50e9, 0.2e-3);
}

TEST(Cluster, GatheringIsHalfOfReducing) {
  const double reduce = collective_s({}, all_reduce_kind, all_reduced(1e10, 8), RankGroup::first(8));
  const double gather = collective_s({}, all_gather_kind, all_gathered(1e10, 8), RankGroup::first(8));
  EXPECT_NEAR(gather / reduce, 0.5, 1e-3);
}

// 8.4 us and 7 steps of 3.4 us; every rank receives all bytes.
TEST(Cluster, AllOfABroadcastCrossesEachLink) {
  EXPECT_NEAR(collective_s({}, broadcast_kind, {0.0, 1e9, 1e9}, RankGroup::first(8)), 32.2 * micro + 1e9 / 450e9, 1e-9);
}

// Two ranks in two nodes: 8.4 us, a step of 14 us, and all bytes over one link of 50 GB/s.
TEST(Cluster, AllOfABroadcastEntersEachNode) {
  EXPECT_NEAR(collective_s({}, broadcast_kind, {0.0, 1e9, 1e9}, RankGroup({0, 8})), 22.4 * micro + 1e9 / 50e9, 1e-9);
}

// Half of each rank's gigabyte goes to the other node by that rank's own link: 50 GB/s, not 400.
TEST(Cluster, InAnExchangeEachRankSendsItsOwnMessage) {
  for (const OpKind& kind : {all_to_all_kind, dispatch_tokens_kind})
    EXPECT_NEAR(collective_s({}, kind, {0.0, 1e9 * 15 / 16, 1e9}, RankGroup::first(16)), 22.4 * micro + 0.5e9 / 50e9,
                1e-9);
}

// Only the bytes take twice as long, not 8.4 us and the 14 steps of 3.4 us.
TEST(Cluster, ASlowLinkSlowsTheBytesOfItsCollectives) {
  const Cluster cluster{.slow_links = {{5, 2.0}}};
  EXPECT_NEAR(collective_s(cluster, all_reduce_kind, all_reduced(1e9, 8), RankGroup::first(8)),
              56.0 * micro + 2.0 * 1.75e9 / 450e9, 1e-9);
  EXPECT_EQ(collective_s(cluster, all_reduce_kind, all_reduced(1e9, 4), RankGroup::first(4)),
            collective_s({}, all_reduce_kind, all_reduced(1e9, 4), RankGroup::first(4)));
}

// 16 ranks in two nodes: 8 GB leave each node at 400 GB/s, or at a quarter of that. A single rank per node fills an
// uplink of an eighth of 400 GB/s with its link of 50 GB/s; an uplink of a sixteenth halves its rate.
TEST(Cluster, AnOversubscribedUplinkSlowsTheCollectivesThatFillIt) {
  const auto all_s = [](double oversubscription) {
    return collective_s({.oversubscription = oversubscription}, all_reduce_kind, all_reduced(8e9, 16),
                        RankGroup::first(16));
  };
  EXPECT_NEAR(all_s(4.0), 8e9 / 100e9, 0.2e-3);
  const auto pair_s = [](double oversubscription) {
    return collective_s({.oversubscription = oversubscription}, all_reduce_kind, all_reduced(8e9, 2),
                        RankGroup({0, 8}));
  };
  EXPECT_EQ(pair_s(8.0), pair_s(1.0));
  EXPECT_NEAR(pair_s(16.0), 8e9 / 25e9, 0.2e-3);
}

/// Time of a send_recv or broadcast of `bytes` on these ranks.
CollectiveTime moved(OpKind kind, double bytes, std::vector<int> ranks) {
  return collective_time({.oversubscription = 8.0}, collective_call(kind, RankGroup(std::move(ranks))),
                         {0.0, bytes, bytes});
}

// In a ring of 16 ranks, one rank sends out of each node: an eighth of a full uplink, all of the one here.
TEST(Cluster, OfARingOfSendsOneLeavesEachNode) {
  std::vector<int> ranks;
  for (int rank = 0; rank < 16; ++rank) ranks.push_back(rank);
  const CollectiveTime time = moved(send_recv_kind, 1e9, ranks);
  EXPECT_NEAR(time.seconds(), 1e9 / 50e9, 0.2e-3);
  EXPECT_DOUBLE_EQ(time.share, 1.0);
  EXPECT_THAT(time.uplinks, ::testing::ElementsAre(0, 1, 2, 3));
}

// From rank 8, node 1, through node 0 to node 2.
TEST(Cluster, ABroadcastGoesNeitherBackToItsRootNorOutOfTheLastNode) {
  EXPECT_THAT(moved(broadcast_kind, 1e9, {8, 0, 16}).uplinks, ::testing::ElementsAre(0, 1, 2, 5));
}

TEST(Cluster, InANodeNoUplinkIsUsed) {
  EXPECT_THAT(moved(send_recv_kind, 1e9, {8, 9, 10}).uplinks, ::testing::IsEmpty());
}

TEST(Cluster, OneRankHasNothingToWaitFor) {
  EXPECT_EQ(collective_s({}, all_reduce_kind, all_reduced(1e9, 1), RankGroup::first(1)), Cluster{}.launch_s);
}

}  // namespace
}  // namespace gpubench
