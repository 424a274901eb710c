#include "harness/simulate/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "reference/ops/collective.h"
#include "reference/ops/gemm.h"
#include "reference/ops/transform/batches.h"
#include "tests/harness/simulate/lanes.h"

namespace gpubench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Rank 0 arrives at 1 s, rank 1 at 3 s: the collective ends at 3.5, its readers at 4.5 and 6.5.
TEST(Simulate, ACollectiveBeginsWithTheLastOfItsMembers) {
  Lanes lanes;
  const std::size_t reduce = lanes.launch("reduce", {0, 1}, 0.5);
  const double before[] = {1.0, 3.0}, after[] = {1.0, 3.0};
  for (const int rank : {0, 1}) {
    const auto at = static_cast<std::size_t>(rank);
    lanes.compute(at, lanes.launch("produce", {rank}, before[at]));
    lanes.communicate(at, reduce, 1);
    lanes.compute(at, lanes.launch("consume", {rank}, after[at]), 1);
  }
  const Simulated run = lanes.run();
  EXPECT_DOUBLE_EQ(run.ranks[0].end_s, 4.5);
  EXPECT_DOUBLE_EQ(run.end_s, 6.5);
  EXPECT_DOUBLE_EQ(run.ranks[0].waiting_s, 2.0);
  EXPECT_DOUBLE_EQ(run.ranks[1].waiting_s, 0.0);
  EXPECT_DOUBLE_EQ(run.exposed(), 1.0 - 6.0 / 6.5);
  EXPECT_THAT(run.stuck, IsEmpty());
}

// Steps that do not wait run during the collective.
TEST(Simulate, LanesRunSideBySide) {
  Lanes lanes;
  const std::size_t reduce = lanes.launch("reduce", {0, 1}, 10.0);
  for (const int rank : {0, 1}) {
    const auto at = static_cast<std::size_t>(rank);
    lanes.compute(at, lanes.launch("produce", {rank}, 1.0));
    lanes.communicate(at, reduce, 1);
    lanes.compute(at, lanes.launch("other", {rank}, 9.0));
  }
  EXPECT_DOUBLE_EQ(lanes.run().end_s, 11.0);
}

TEST(Simulate, ADifferentOrderOfCollectivesIsADeadlockNamingAllRanks) {
  Lanes lanes;
  const std::size_t first = lanes.launch("bucket0", {0, 1, 2}, 1.0), second = lanes.launch("bucket1", {0, 1, 2}, 1.0);
  for (const std::size_t rank : {0U, 1U, 2U}) {
    lanes.communicate(rank, rank == 2 ? second : first);
    lanes.communicate(rank, rank == 2 ? first : second);
  }
  const Simulated run = lanes.run();
  ASSERT_THAT(run.stuck, SizeIs(3));
  EXPECT_THAT(run.stuck[0].awaited, ElementsAre(2));
  EXPECT_EQ(run.stuck_reason(),
            "ranks 0, 1 in 'bucket0', waiting for rank 2; rank 2 in 'bucket1', waiting for ranks 0, 1");
}

TEST(Simulate, AStoppedRankIsNamedByTheWaitingOnes) {
  Lanes lanes;
  const std::size_t reduce = lanes.launch("reduce", {0, 1, 2, 3}, 1.0);
  for (const int rank : {0, 1, 2, 3}) {
    const auto at = static_cast<std::size_t>(rank);
    lanes.compute(at, lanes.launch("produce", {rank}, 2.0));
    lanes.communicate(at, reduce, 1);
  }
  const Simulated run = lanes.run({.stops = {{2, 1.5}}});
  EXPECT_THAT(run.stopped, ElementsAre(2));
  EXPECT_EQ(run.stuck_reason(), "ranks 0, 1, 3 in 'reduce', waiting for rank 2, which stopped");
}

TEST(Simulate, ASlowRankDelaysAllMembersOfItsCollectives) {
  Lanes lanes;
  const std::size_t reduce = lanes.launch("reduce", {0, 1}, 1.0);
  for (const int rank : {0, 1}) {
    lanes.compute(static_cast<std::size_t>(rank), lanes.launch("produce", {rank}, 2.0));
    lanes.communicate(static_cast<std::size_t>(rank), reduce, 1);
  }
  const Simulated run = lanes.run({.slower = {{1, 1.5}}});
  EXPECT_DOUBLE_EQ(run.end_s, 4.0);
  EXPECT_DOUBLE_EQ(run.ranks[0].waiting_s, 1.0);
}

/// Seconds to reduce a gradient of 64 x 64 in f32.
double bucket_s(const Cluster& cluster, int ranks) {
  const double bytes = 64.0 * 64.0 * 4.0, n = ranks;
  return collective_s(cluster, all_reduce_kind, {0.0, 2.0 * (n - 1.0) / n * bytes, bytes}, RankGroup::first(ranks));
}

Program step_on(int ranks) {
  Program p;
  TensorSpec x = tensor("x", DType::f32, {64, 64}, Role::input);
  x.placement = Placement::shard(0);
  const ValueId data = p.add(std::move(x));
  Gemm transposed;
  transposed.transpose_a = true;
  const ValueId a = gemm(p, transposed, {}, "first", data, data).c, b = gemm(p, transposed, {}, "second", data, a).c;
  const std::vector<ValueId> gradients{a, b};
  return data_parallel(p, {.ranks = ranks, .bucket_bytes = 1}, gradients);
}

// 1,024 ranks differ from 8 only in the time of the two consecutive collectives; each rank has two products.
TEST(Simulate, RunsTheProgramsOfAThousandRanks) {
  const Cluster cluster{};
  for (const int ranks : {2, 8, 1024}) {
    const Program program = step_on(ranks);
    const SimulatedProgram lanes = lanes_of(program, cluster);
    ASSERT_THAT(lanes.ranks, SizeIs(static_cast<std::size_t>(ranks)));
    const Simulated run = simulate(lanes, cluster);
    EXPECT_THAT(run.stuck, IsEmpty());
    const double bucket = bucket_s(cluster, ranks);
    const double product = cluster.launch_s;  // 0.5 MFLOP take less than a launch
    // 'second' reads 'first' and waits for its reduction.
    EXPECT_NEAR(run.end_s, 2.0 * (product + bucket), 1e-12) << ranks;
    EXPECT_NEAR(run.ranks.back().compute_s, 2.0 * product, 1e-12);
  }
}

TEST(Simulate, OpsThatWereMeasuredTakeThatLongOnEveryRank) {
  const Cluster cluster{};
  const SimulatedProgram lanes = lanes_of(step_on(8), cluster, {{"first", 1.0}});
  EXPECT_EQ(lanes.measured, 8);
  const double bucket = bucket_s(cluster, 8);
  EXPECT_NEAR(simulate(lanes, cluster).end_s, 1.0 + cluster.launch_s + 2.0 * bucket, 1e-12);
}

TEST(Simulate, IsTheSameEachTime) {
  const Cluster cluster{.oversubscription = 16.0, .slower = {{3, 1.25}, {17, 2.0}}};
  const Program program = step_on(64);
  const auto ends = [&] {
    std::vector<double> all;
    for (const SimulatedRank& rank : simulate(lanes_of(program, cluster), cluster).ranks) all.push_back(rank.end_s);
    return all;
  };
  EXPECT_EQ(ends(), ends());
}

}  // namespace
}  // namespace gpubench
