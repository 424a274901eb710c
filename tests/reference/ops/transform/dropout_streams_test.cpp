// Dropout counts elements per rank and micro-batch, so each must draw by different words.
#include <gtest/gtest.h>

#include <set>

#include "harness/core/error.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/dropout.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/batches.h"
#include "reference/ops/transform/partition.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace dropout_streams_test {

struct Step {
  Program program;
  std::vector<ValueId> gradients;
};

/// dy of two sequences of two tokens, dropped; its sum over the rows is the gradient of w.
Step step_with(bool offset_is_batch) {
  Step step;
  Program& p = step.program;
  TensorSpec dy = tensor("dy", DType::f32, {4, 8}, Role::gradient);
  dy.placement = Placement::shard(0);
  TensorSpec offset = tensor("offset", DType::i32, {2}, Role::input, Fill::integers(0, 1 << 30));
  if (offset_is_batch) offset.placement = Placement::shard(0);
  const MaskSource words{p.add(tensor("seed", DType::i32, {2}, Role::input, Fill::integers(0, 1 << 30))),
                         p.add(std::move(offset))};
  const ValueId w = source(p, "w", DType::f32, {8}, Role::parameter);
  const ValueId dropped = dropout(p, {.p = 0.5}, f32_math, "drop", p.add(std::move(dy)), words);
  step.gradients = {column_sum(p, f32_math, "sum", dropped)};
  (void)add(p, f32_math, "update", step.gradients[0], w);
  return step;
}

const Cuts cuts{{"w", {0}}};

/// Words of the offset that the program's dropouts read, by index among those of all ranks.
std::multiset<std::int64_t> words_of(const Program& program) {
  std::multiset<std::int64_t> words;
  for (const OpCall& call : program.ops()) {
    if (call.kind != dropout_kind) continue;
    const ValueId offset = call.input("offset"), whole = program.values_in(program.value(offset).storage).front();
    const std::int64_t first = (program.value(offset).offset_bytes - program.value(whole).offset_bytes) / 4;
    for (const std::int64_t word : {first, first + 1}) words.insert(global_index(program.spec(whole), word));
  }
  return words;
}

std::multiset<std::int64_t> first_words(std::int64_t count) {
  std::multiset<std::int64_t> words;
  for (std::int64_t word = 0; word < count; ++word) words.insert(word);
  return words;
}

TEST(DropoutStreams, AreOfEachRankAndMicroBatchItsOwn) {
  const Step one = step_with(true);
  const Accumulated in_three = accumulate(one.program, {.micro_batches = 3}, one.gradients);
  EXPECT_EQ(words_of(in_three.program), first_words(6));
  const PartitionedStep sharded = fully_sharded(one.program, {.ranks = 2}, cuts, one.gradients);
  EXPECT_EQ(words_of(sharded.program), first_words(4));
  const PartitionedStep in_parts = context_parallel(one.program, {.ranks = 2, .tokens = 2}, one.gradients);
  EXPECT_EQ(words_of(in_parts.program), first_words(4));
  EXPECT_EQ(words_of(data_parallel(one.program, {.ranks = 5}, one.gradients)), first_words(10));
}

TEST(DropoutStreams, AreSoInProducts) {
  const Step one = step_with(true);
  const auto on_parts_and_replicas = [](const Program& step, const std::vector<ValueId>& gradients) {
    const PartitionedStep in_parts = context_parallel(step, {.ranks = 2, .tokens = 2}, gradients);
    return data_parallel(in_parts.program, {.ranks = 2}, in_parts.gradients);
  };
  const Accumulated micro = accumulate(one.program, {.micro_batches = 3}, one.gradients);
  EXPECT_EQ(words_of(on_parts_and_replicas(micro.program, micro.gradients)), first_words(3 * 4 * 2));
  const PartitionedStep sharded = fully_sharded(one.program, {.ranks = 2}, cuts, one.gradients);
  EXPECT_EQ(words_of(on_parts_and_replicas(sharded.program, sharded.gradients)), first_words(2 * 4 * 2));
}

// Tensor-parallel ranks have the same activations, and must drop the same elements.
TEST(DropoutStreams, AreOneForRanksThatShareTensors) {
  const Step one = step_with(true);
  const PartitionedStep shared = tensor_parallel(one.program, {.ranks = 2}, cuts, one.gradients);
  EXPECT_EQ(words_of(shared.program), (std::multiset<std::int64_t>{0, 0, 1, 1}));
}

TEST(DropoutStreams, AnOffsetThatAllWouldShareIsRefusedByEveryTransform) {
  const Step one = step_with(false);
  const auto refused = [&](const char* transform, const auto& build) {
    EXPECT_EQ(program_error(build), std::string(transform) +
                                        ": 'offset', the offset of dropout 'drop', would be the same for all ranks or "
                                        "micro-batches; expected a source that is part of the batch, not a constant");
  };
  refused("accumulate", [&] { (void)accumulate(one.program, {.micro_batches = 2}, one.gradients); });
  refused("partition", [&] { (void)fully_sharded(one.program, {.ranks = 2}, cuts, one.gradients); });
  refused("context_parallel", [&] { (void)context_parallel(one.program, {.ranks = 2, .tokens = 2}, one.gradients); });
  refused("data_parallel", [&] { (void)data_parallel(one.program, {.ranks = 2}, one.gradients); });
}

}  // namespace dropout_streams_test
}  // namespace gpubench::testing
