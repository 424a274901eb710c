// Collectives on shared uplinks, slow links and cut links; end times computed by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reference/ops/collective.h"
#include "tests/harness/simulate/lanes.h"

namespace gpubench {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::IsEmpty;

/// A collective that fills the uplinks of nodes 0 and 1 after a latency.
CollectiveTime fills(double wire_s, double latency_s = 0.0, std::vector<int> uplinks = {0, 1, 2, 3}) {
  return {latency_s, wire_s, 1.0, std::move(uplinks)};
}

TEST(Contention, TwoCollectivesOnOneUplinkHaveHalfOfItEach) {
  Lanes lanes;
  const std::size_t a = lanes.launch("a", {0, 8}, fills(1.0)), b = lanes.launch("b", {1, 9}, fills(1.0));
  for (const std::size_t rank : {0U, 8U}) lanes.communicate(rank, a);
  for (const std::size_t rank : {1U, 9U}) lanes.communicate(rank, b);
  const Simulated run = lanes.run();
  for (const std::size_t rank : {0U, 1U, 8U, 9U}) {
    EXPECT_DOUBLE_EQ(run.ranks[rank].end_s, 2.0);
    EXPECT_DOUBLE_EQ(run.ranks[rank].communication_s, 2.0);
    EXPECT_DOUBLE_EQ(run.ranks[rank].contention_s, 1.0);
    EXPECT_EQ(run.ranks[rank].waiting_s, 0.0);
  }
}

TEST(Contention, CollectivesOfOtherNodesDontSlowEachOther) {
  Lanes lanes;
  const std::size_t a = lanes.launch("a", {0, 8}, fills(1.0));
  const std::size_t b = lanes.launch("b", {16, 24}, fills(1.0, 0.0, {4, 5, 6, 7}));
  for (const std::size_t rank : {0U, 8U}) lanes.communicate(rank, a);
  for (const std::size_t rank : {16U, 24U}) lanes.communicate(rank, b);
  const Simulated run = lanes.run();
  EXPECT_EQ(run.end_s, 1.0);
  EXPECT_THAT(run.ranks, Each(Field(&SimulatedRank::contention_s, 0.0)));
}

// b begins at 2, when a has 2 s left. Both run at half rate until 4, when b ends; a ends at 5, and rank 0 computes.
TEST(Contention, ALaterCollectiveSlowsTheOtherFromItsBegin) {
  Lanes lanes;
  const std::size_t a = lanes.launch("a", {0, 8}, fills(4.0)), b = lanes.launch("b", {1, 9}, fills(1.0));
  for (const int rank : {0, 8}) {
    lanes.communicate(static_cast<std::size_t>(rank), a);
    lanes.compute(static_cast<std::size_t>(rank), lanes.launch("consume", {rank}, 1.0), 1);
  }
  for (const int rank : {1, 9}) {
    lanes.compute(static_cast<std::size_t>(rank), lanes.launch("produce", {rank}, 2.0));
    lanes.communicate(static_cast<std::size_t>(rank), b, 1);
  }
  const Simulated run = lanes.run();
  EXPECT_DOUBLE_EQ(run.ranks[0].end_s, 6.0);
  EXPECT_DOUBLE_EQ(run.ranks[0].contention_s, 1.0);
  EXPECT_DOUBLE_EQ(run.ranks[1].end_s, 4.0);
  EXPECT_DOUBLE_EQ(run.ranks[1].contention_s, 1.0);
}

// a's bytes flow from 1 to 2; b begins at 1, its bytes flow from 2 to 3.
TEST(Contention, LatencyLeavesLinksToOthers) {
  Lanes lanes;
  const std::size_t a = lanes.launch("a", {0, 8}, fills(1.0, 1.0)), b = lanes.launch("b", {1, 9}, fills(1.0, 1.0));
  for (const std::size_t rank : {0U, 8U}) lanes.communicate(rank, a);
  for (const int rank : {1, 9}) {
    lanes.compute(static_cast<std::size_t>(rank), lanes.launch("produce", {rank}, 1.0));
    lanes.communicate(static_cast<std::size_t>(rank), b, 1);
  }
  const Simulated run = lanes.run();
  EXPECT_EQ(run.ranks[0].end_s, 2.0);
  EXPECT_EQ(run.ranks[1].end_s, 3.0);
  EXPECT_THAT(run.ranks, Each(Field(&SimulatedRank::contention_s, 0.0)));
}

Program reductions(const std::vector<std::vector<int>>& groups, int ranks) {
  Program p(Mesh::line(ranks));
  for (const std::vector<int>& group : groups) {
    std::vector<ValueId> x;
    for (const int rank : group) {
      TensorSpec spec = tensor("x" + std::to_string(rank), DType::f32, {250'000'000}, Role::input);
      spec.placement.rank = rank;
      x.push_back(p.add(std::move(spec)));
    }
    all_reduce(p, {.ranks = static_cast<int>(group.size())}, {}, "of" + std::to_string(group.front()), x, false,
               RankGroup(group));
  }
  return p;
}

double reduced_s(const Cluster& cluster, double ranks, const RankGroup& group) {
  return collective_s(cluster, all_reduce_kind, {0.0, 2.0 * (ranks - 1.0) / ranks * 1e9, 1e9}, group);
}

TEST(Contention, ACollectiveAloneTakesWhatItsLinksTake) {
  for (const double oversubscription : {1.0, 3.0, 16.0}) {
    const Cluster cluster{.oversubscription = oversubscription};
    for (const std::vector<int>& group : {std::vector{0, 1, 2}, {0, 8}, {0, 1, 2, 8, 9, 17}}) {
      const Simulated run = simulate(lanes_of(reductions({group}, 24), cluster), cluster);
      EXPECT_EQ(run.end_s, reduced_s(cluster, static_cast<double>(group.size()), RankGroup(group)));
      EXPECT_EQ(run.ranks[0].communication_s, run.end_s);
      EXPECT_EQ(run.ranks[0].contention_s, 0.0);
    }
  }
}

// Pairs of one rank per node; the uplink has a quarter of the bandwidth of eight links. Eight pairs run at a quarter of
// their rate alone, three at two thirds, two at full rate. The latency of 8.4 + 2 * 14 us stays the same.
TEST(Contention, PairsOfRanksShareWhatTheirNodesUplinksReach) {
  std::vector<std::vector<int>> pairs;
  for (int i = 0; i < 8; ++i) pairs.push_back({i, 8 + i});
  const double latency_s = 36.4e-6, wire_s = 1e9 / 50e9;
  const auto end_s = [&](double oversubscription, std::size_t count) {
    const Cluster cluster{.oversubscription = oversubscription};
    const Simulated run = simulate(lanes_of(reductions({pairs.begin(), pairs.begin() + count}, 16), cluster), cluster);
    EXPECT_NEAR(run.ranks[0].contention_s, run.end_s - latency_s - wire_s, 1e-12);
    return run.end_s;
  };
  EXPECT_NEAR(end_s(1.0, 8), latency_s + wire_s, 1e-12);
  EXPECT_NEAR(end_s(4.0, 8), latency_s + 4.0 * wire_s, 1e-12);
  EXPECT_NEAR(end_s(4.0, 2), latency_s + wire_s, 1e-12);
  EXPECT_NEAR(end_s(4.0, 3), latency_s + 1.5 * wire_s, 1e-12);
}

// Without other collectives there is no contention.
TEST(Contention, ASlowLinkMakesItsCollectivesLonger) {
  const Program program = reductions({{0, 1}, {2, 3}}, 4);
  const Cluster cluster{.slow_links = {{3, 2.0}}};
  const Simulated run = simulate(lanes_of(program, cluster), cluster);
  EXPECT_EQ(run.ranks[0].end_s, reduced_s({}, 2.0, RankGroup({0, 1})));
  EXPECT_NEAR(run.ranks[2].end_s - run.ranks[0].end_s, 1e9 / 450e9, 1e-12);
  EXPECT_EQ(run.ranks[2].contention_s, 0.0);
}

// 'first' ends before rank 3's link is cut at 1.5; 'second', of 1 s, does not, and rank 4 waits for its members.
TEST(Contention, ACollectiveOverACutLinkNeverEnds) {
  Lanes lanes;
  const std::size_t first = lanes.launch("first", {2, 3}, 1.0), second = lanes.launch("second", {2, 3}, 1.0);
  const std::size_t third = lanes.launch("third", {2, 4}, 1.0);
  for (const std::size_t launch : {first, second, third}) lanes.communicate(2, launch);
  for (const std::size_t launch : {first, second}) lanes.communicate(3, launch);
  lanes.communicate(4, third);
  EXPECT_EQ(lanes.run().end_s, 3.0);
  EXPECT_THAT(lanes.run({.cuts = {{3, 2.0}}}).stuck, IsEmpty());

  const Simulated run = lanes.run({.cuts = {{3, 1.5}}});

  EXPECT_EQ(run.end_s, 1.0);
  EXPECT_EQ(run.stuck[0].cut, (std::pair{3, 1.5}));
  EXPECT_EQ(run.stuck_reason(),
            "ranks 2, 3 in 'second': rank 3's link was cut at 1.5 s; rank 4 in 'third', waiting for rank 2");
}

// Both run at half rate until a is cut at 1; b then has 0.5 s left.
TEST(Contention, ACutCollectiveFreesItsUplinks) {
  Lanes lanes;
  const std::size_t a = lanes.launch("a", {0, 8}, fills(1.0)), b = lanes.launch("b", {1, 9}, fills(1.0));
  for (const std::size_t rank : {0U, 8U}) lanes.communicate(rank, a);
  for (const std::size_t rank : {1U, 9U}) lanes.communicate(rank, b);
  const Simulated run = lanes.run({.cuts = {{8, 1.0}}});
  EXPECT_DOUBLE_EQ(run.ranks[1].end_s, 1.5);
  EXPECT_EQ(run.stuck_reason(), "ranks 0, 8 in 'a': rank 8's link was cut at 1 s");
}

// Cut during its latency, or before it begins.
TEST(Contention, ALinkMayBeCutBeforeAByteFlows) {
  for (const double cut_s : {0.0, 0.5}) {
    Lanes lanes;
    const std::size_t a = lanes.launch("a", {0, 8}, fills(1.0, 1.0));
    for (const std::size_t rank : {0U, 8U}) lanes.communicate(rank, a);
    EXPECT_EQ(lanes.run({.cuts = {{0, cut_s}}}).stuck.size(), 2U);
  }
}

}  // namespace
}  // namespace gpubench
