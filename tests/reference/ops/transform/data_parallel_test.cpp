#include "reference/ops/transform/batches.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/core/error.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/dropout.h"
#include "reference/ops/gemm.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/ops/textbook_run.h"
#include "tests/reference/ops/transform/mesh_step.h"

namespace gpubench::testing {
namespace data_parallel_test {

/// The end of a backward: two layers' gradients, the second layer's first, and an op that needs both.
struct Step {
  Program program;
  std::vector<ValueId> gradients;
};

Step two_gradients() {
  Step step;
  Program& p = step.program;
  TensorSpec spec = tensor("dy", DType::f32, {2, 3}, Role::gradient);
  spec.placement = Placement::shard(0);
  const ValueId dy = p.add(std::move(spec));
  const ValueId w = source(p, "w", DType::f32, {3}, Role::parameter);
  const ValueId second = column_sum(p, f32_math, "second", dy);
  const ValueId first = column_sum(p, f32_math, "first", scale(p, {2.0}, f32_math, "back", dy));
  (void)add(p, f32_math, "update", add(p, f32_math, "both", first, second), w);
  step.gradients = {first, second};
  return step;
}

TEST(DataParallel, ReducesEachBucketRightAfterTheOpThatCompletesIt) {
  const Step step = two_gradients();
  const Program each = data_parallel(step.program, {.ranks = 2, .bucket_bytes = 1}, step.gradients);
  EXPECT_EQ(labels_of(each),
            (std::vector<std::string>{"second@0", "second@1", "gradients.bucket0", "back@0", "back@1", "first@0",
                                      "first@1", "gradients.bucket1", "both@0", "both@1", "update@0", "update@1"}));
  const Program together = data_parallel(step.program, {.ranks = 2}, step.gradients);
  EXPECT_EQ(std::count_if(together.ops().begin(), together.ops().end(),
                          [](const OpCall& op) { return op.kind == all_reduce_kind; }),
            1);
}

TEST(DataParallel, OpsBetweenABucketAndItsReadersNeedNotWaitForIt) {
  const Step step = two_gradients();
  const Program program = data_parallel(step.program, {.ranks = 2, .bucket_bytes = 1}, step.gradients);
  const std::vector<std::vector<int>> waits = program.dependencies();
  constexpr int bucket = 2;
  for (const int op : {3, 4, 5, 6}) {  // back and first, on both ranks
    EXPECT_EQ(
        std::count(waits[static_cast<std::size_t>(op)].begin(), waits[static_cast<std::size_t>(op)].end(), bucket), 0)
        << labels_of(program)[static_cast<std::size_t>(op)];
  }
  EXPECT_EQ(std::count(waits[8].begin(), waits[8].end(), bucket), 1);
}

TEST(DataParallel, EveryOpRunsOnItsOwnRankAndCollectivesOnAll) {
  const Step step = two_gradients();
  const Program program = data_parallel(step.program, {.ranks = 3}, step.gradients);
  for (const OpCall& op : program.ops()) {
    const std::optional<int> rank = rank_of(program, op);
    EXPECT_EQ(rank.has_value(), op.kind != all_reduce_kind) << op.label;
    if (rank) {
      EXPECT_EQ(op.label.back(), static_cast<char>('0' + *rank));
    }
  }
}

// Column sums of the ranks' rows, averaged over two ranks.
TEST(DataParallel, TheGradientsAreTheAverageOverTheRanks) {
  const Step step = two_gradients();
  const Program program = data_parallel(step.program, {.ranks = 2}, step.gradients);
  TextbookRun run(program);
  ValueId update;
  for (int i = 0; i < static_cast<int>(program.values().size()); ++i) {
    const TensorSpec& spec = program.spec({i});
    if (spec.name == "dy@0") run.set({i}, {1, 2, 3, 4, 5, 6});
    if (spec.name == "dy@1") run.set({i}, {10, 20, 30, 40, 50, 60});
    if (spec.global_name() == "w") run.set({i}, {0, 0, 0});
    if (spec.name == "update@1") update = {i};
  }
  run.run();
  // Sums 5, 7, 9 and 50, 70, 90; their average, and twice that for the first layer: three times in all.
  EXPECT_EQ(run.get(update), (std::vector<double>{82.5, 115.5, 148.5}));
}

TEST(DataParallel, OneRankIsTheStepAsItIs) {
  const Step step = two_gradients();
  EXPECT_EQ(data_parallel(step.program, {}, step.gradients).to_string(), step.program.to_string());
}

TEST(DataParallel, AGradientThatNothingProducesIsRefused) {
  const Step step = two_gradients();
  EXPECT_EQ(program_error([&] { (void)data_parallel(step.program, {.ranks = 2}, std::array{ValueId{0}}); }),
            "data_parallel: no op produces gradient 'dy'");
}

TEST(DataParallel, ReadingAnOlderVersionOfAReducedGradientIsRefused) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 2});
  const ValueId c = source(p, "c", DType::f32, {2, 2});
  const ValueId g = gemm(p, {.beta = 1.0}, f32_math, "g", x, x, {.c_in = c}).c;
  (void)scale(p, {2.0}, f32_math, "late", c);
  EXPECT_NE(program_error([&] { (void)data_parallel(p, {.ranks = 2}, std::array{g}); }).find("'late' reads 'c'"),
            std::string::npos);
}

// A ZeRO rank reads its part of a clipped gradient.
TEST(DataParallel, ReadingAPartOfWhatWasMadeOfAReducedGradientIsNot) {
  Step step = two_gradients();
  Program& p = step.program;
  const ValueId clipped = p.update(step.gradients[0], "clipped");
  p.append({scale_kind, Scale{0.5}, f32_math, {step.gradients[0]}, {clipped}, "clip"});
  const ValueId part = p.part(clipped, tensor("clipped.part", DType::f32, {1}, Role::gradient), 1);
  (void)scale(p, {2.0}, f32_math, "optimizer", part);
  EXPECT_NO_THROW((void)data_parallel(p, {.ranks = 2}, step.gradients));
}

TEST(DataParallel, EachRankHasItsOwnPartOfTheBatch) {
  const Step step = two_gradients();
  const Program program = data_parallel(step.program, {.ranks = 3}, step.gradients);
  EXPECT_EQ(program.mesh(), Mesh::line(3));
  int seen = 0;
  for (const Value& value : program.values()) {
    if (value.spec.global_name() != "dy") continue;
    EXPECT_EQ(value.spec.placement, Placement::shard(0, seen, 3));
    ++seen;
  }
  EXPECT_EQ(seen, 3);
}

Step with_dropout() {
  Step step;
  Program& p = step.program;
  TensorSpec dy = tensor("dy", DType::f32, {4, 8}, Role::gradient);
  dy.placement = Placement::shard(0);
  TensorSpec words = tensor("offset", DType::i32, {2}, Role::input, Fill::integers(0, 1 << 30));
  words.placement = Placement::shard(0);
  const MaskSource source{p.add(tensor("seed", DType::i32, {2}, Role::input, Fill::integers(0, 1 << 30))),
                          p.add(std::move(words))};
  const ValueId dropped = dropout(p, {.p = 0.5}, f32_math, "drop", p.add(std::move(dy)), source);
  step.gradients = {column_sum(p, f32_math, "sum", dropped)};
  return step;
}

// One seed per run; words 2 r and 2 r + 1 of a longer offset are rank r's.
TEST(DataParallel, EachRanksDropoutDrawsMasksOfItsOwn) {
  const Step step = with_dropout();
  const Program program = data_parallel(step.program, {.ranks = 2}, step.gradients);

  int offsets = 0;
  for (const Value& value : program.values()) {
    if (value.spec.global_name() == "seed") {
      EXPECT_EQ(value.spec.placement, Placement::on(value.spec.placement.rank, 2));
    }
    if (value.spec.global_name() != "offset") continue;
    EXPECT_EQ(value.spec.placement, Placement::shard(0, offsets, 2));
    EXPECT_EQ(global_index(value.spec, 1), 2 * offsets + 1);
    ++offsets;
  }
  EXPECT_EQ(offsets, 2);
}

const OpCall& op_named(const Program& program, const std::string& label) {
  const auto found =
      std::find_if(program.ops().begin(), program.ops().end(), [&](const OpCall& op) { return op.label == label; });
  if (found == program.ops().end()) throw ProgramError("no op '" + label + "'");
  return *found;
}

// Two replicas of a step on (tp, pp) = (2, 2), ranks 0 to 3: ranks 4 to 7 are the second. In the step ranks 0 and 2
// share tp, 0 and 1 share pp.
TEST(DataParallel, AStepOnAMeshIsReplicatedWithItsGroups) {
  const MeshStep step = mesh_step(Mesh({{"tp", 2}, {"pp", 2}}), {}, 1);
  const Program program = data_parallel(step.program, {.ranks = 2, .bucket_bytes = 1}, step.gradients);

  EXPECT_EQ(program.mesh(), Mesh({{"dp", 2}, {"tp", 2}, {"pp", 2}}));
  EXPECT_EQ(op_named(program, "sum0.1@dp1").group, RankGroup({5, 7}));
  EXPECT_EQ(op_named(program, "next.2@dp1").group, RankGroup({6, 7}));
  EXPECT_EQ(op_named(program, "gradients.bucket0@3").group, RankGroup({3, 7}));
  EXPECT_EQ(rank_of(program, op_named(program, "up0@6")), 6);
  const TensorSpec& w = program.spec(op_named(program, "up0@6").inputs[1]);
  EXPECT_EQ(w.name, "up0.w@6");
  EXPECT_EQ(w.placement.spread, (std::vector{AxisSpread{AxisSpread::Kind::sharded, 1, 1, 1, 2}}));
  const TensorSpec& x = program.spec(op_named(program, "up0@6").inputs[0]);
  EXPECT_EQ(x.placement.spread, (std::vector{AxisSpread{AxisSpread::Kind::sharded, 0, 0, 1, 2}}));
}

/// One rank's view of a program: what each op in which it takes part reads and writes there.
std::vector<std::string> seen_from(const Program& program, int rank) {
  std::vector<std::string> words;
  for (const OpCall& op : program.ops()) {
    std::string own;
    for (const std::vector<ValueId>* list : {&op.inputs, &op.outputs}) {
      for (const ValueId id : *list) {
        const TensorSpec& spec = program.spec(id);
        if (spec.placement.rank != rank) continue;
        own += " " + spec.to_string() + " from " + std::to_string(global_index(spec, 0)) + " of " +
               global_shape(spec).to_string();
      }
    }
    if (own.empty()) continue;
    words.push_back(op.label + " " + std::string(op.kind.name) + "{" + op.attributes.to_string() + "} [" +
                    op.group.to_string() + "]" + own);
  }
  return words;
}

TEST(DataParallel, AProgramThatHoldsOneRankIsWhatTheWholeOneSaysOfIt) {
  const Mesh mesh({{"tp", 2}, {"pp", 3}});
  const MeshStep whole_step = mesh_step(mesh, {}, 2);
  const Program whole = data_parallel(whole_step.program, {.ranks = 4, .bucket_bytes = 200}, whole_step.gradients);
  for (int rank = 0; rank < 24; ++rank) {
    const MeshStep step = mesh_step(mesh, {rank % 6}, 2);
    const Program own = data_parallel(step.program, {.ranks = 4, .bucket_bytes = 200, .held = {rank}}, step.gradients);
    EXPECT_EQ(seen_from(own, rank), seen_from(whole, rank));
    for (const Value& value : own.values()) EXPECT_EQ(value.spec.placement.rank, rank);
  }
}

TEST(DataParallel, OfAStepThatHoldsSomeRanksTheirLikesAreHeldInAllReplicas) {
  const MeshStep step = mesh_step(Mesh({{"tp", 2}, {"pp", 2}}), {1}, 1);
  const Program program = data_parallel(step.program, {.ranks = 2}, step.gradients);
  for (int rank = 0; rank < 8; ++rank) EXPECT_EQ(program.holds(rank), rank == 1 || rank == 5) << rank;
  EXPECT_EQ(op_named(program, "gradients.bucket0@1").held, RankGroup({1, 5}));
  EXPECT_EQ(op_named(program, "sum0.1@dp1").group, RankGroup({5, 7}));
  EXPECT_EQ(op_named(program, "sum0.1@dp1").held, RankGroup({5}));
}

TEST(DataParallel, ARankThatTheStepLacksIsRefused) {
  const MeshStep step = mesh_step(Mesh({{"tp", 2}, {"pp", 2}}), {1}, 1);
  EXPECT_EQ(program_error([&] { (void)data_parallel(step.program, {.ranks = 2, .held = {6}}, step.gradients); }),
            "data_parallel: the result cannot hold rank 6: the step lacks its rank 2");
}

}  // namespace data_parallel_test
}  // namespace gpubench::testing
