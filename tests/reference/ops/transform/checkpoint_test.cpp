// Recomputation: the repeated ops and their inputs; everything else stays equal.
#include "reference/ops/transform/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "reference/ops/attention.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/gemm.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/differentiate.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace checkpoint_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

bool every_op(const OpCall&) { return true; }

std::vector<std::string> labels_again(const Program& program) {
  std::vector<std::string> found = labels_of(program);
  std::erase_if(found, [](const std::string& label) { return !label.ends_with(".again"); });
  return found;
}

// Every source has different values, the same in every program.
std::map<std::string, std::vector<double>> all_values(const Program& program) {
  TextbookRun run(program);
  for (int i = 0; i < static_cast<int>(program.values().size()); ++i) {
    const TensorSpec& spec = program.spec({i});
    if (!program.value({i}).source) continue;
    std::vector<double> values = spread(spec.shape.elements(), std::hash<std::string>()(spec.name));
    for (double& value : values)
      value = spec.dtype == DType::i32 ? 3.0 : spec.role == Role::state ? value * value : value;
    run.set({i}, values);
  }
  run.run();
  std::map<std::string, std::vector<double>> values;
  for (int i = 0; i < static_cast<int>(program.values().size()); ++i) values[program.spec({i}).name] = run.get({i});
  return values;
}

void expect_same_values(const Program& step, const Program& other) {
  const auto want = all_values(step);
  const auto got = all_values(other);
  for (const auto& [name, values] : want) EXPECT_EQ(got.at(name), values) << name;
}

// Blocks as in GPT-2: two heads of attention with packed q, k, v, a norm before and a gelu layer after: x, dy [6, 8].
Program blocks(int count) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {6, 8});
  const ValueId dy = source(p, "dy", DType::f32, {6, 8}, Role::gradient);
  std::vector<ValueId> wanted{x};
  const auto weight = [&](const std::string& name, Shape shape) {
    return wanted.emplace_back(source(p, name, DType::f32, std::move(shape), Role::parameter));
  };
  ValueId y = x;
  for (int i = 0; i < count; ++i) {
    const std::string block = "block" + std::to_string(i) + ".";
    const ValueId normed =
        layer_norm_forward(p, {}, f32_math, block + "ln", y, weight(block + "gamma", {8}), weight(block + "beta", {8}))
            .y;
    const ValueId qkv = gemm(p, {}, f32_math, block + "qkv", normed, weight(block + "qkv.w", {8, 24})).c;
    std::vector<ValueId> parts;
    for (int part = 0; part < 3; ++part) {
      TensorSpec spec = tensor(
          block + "qkv" [part], DType::f32, { 1, 6, 2, 4 }, Role::activation);
      spec.layout.strides = {144, 24, 4, 1};
      parts.push_back(p.part(qkv, std::move(spec), 8 * part));
    }
    const ValueId o =
        attention_forward(p, {.scale = 0.5}, f32_math, block + "attention", parts[0], parts[1], parts[2]).o;
    const ValueId rows = p.part(o, tensor(block + "rows", DType::f32, {6, 8}, Role::activation), 0);
    const ValueId up =
        gemm(p, {.epilogue = Gemm::Epilogue::gelu}, f32_math, block + "up", rows, weight(block + "up.w", {8, 8})).c;
    y = add(p, f32_math, block + "residual", y, up);
  }
  const ValueId out = gemm(p, {}, f32_math, "head", y, weight("head.w", {8, 8})).c;
  const auto gradients = differentiate(p, std::array{Seed{out, dy}}, wanted);
  // An update in place of weights that segments read, after all repetitions.
  const ValueId lr = source(p, "lr", DType::f32, {1}, Role::scalar);
  const ValueId step = source(p, "step", DType::i32, {1}, Role::scalar);
  const ValueId w = named(p, "block0.qkv.w");
  adamw(p, {}, f32_math, "adamw", lr, step,
        std::array{AdamWTensor{w,
                               gradients.at(w),
                               source(p, "m", DType::f32, {8, 24}, Role::state),
                               source(p, "v", DType::f32, {8, 24}, Role::state),
                               {}}});
  return p;
}

TEST(Checkpoint, ABlockRunsAgainBeforeItsBackwardFromWhatTheBlockBeforeLeft) {
  const Program step = blocks(2);

  const Program again = checkpoint(step, every_nth_block(1, every_op));

  // Not the residual: the block's result is kept, since the next layer reads it.
  EXPECT_THAT(labels_again(again),
              ElementsAre("block1.ln.again", "block1.qkv.again", "block1.attention.again", "block1.up.again",
                          "block0.ln.again", "block0.qkv.again", "block0.attention.again", "block0.up.again"));
  const std::vector<std::string> order = labels_of(again);
  const auto place = [&](const std::string& label) { return std::ranges::find(order, label) - order.begin(); };
  EXPECT_EQ(place("block1.up.dz") - place("block1.ln.again"), 4);
  EXPECT_LT(place("block1.ln.backward"), place("block0.ln.again"));
  EXPECT_EQ(again.ops().size(), step.ops().size() + 8);
  EXPECT_EQ(again.op(static_cast<int>(place("block0.ln.again"))).inputs.front(), named(again, "x"));
  EXPECT_EQ(again.op(static_cast<int>(place("block1.ln.again"))).inputs.front(), named(again, "block0.residual"));
  EXPECT_EQ(again.op(static_cast<int>(place("block1.qkv.db"))).inputs.front(), named(again, "block1.ln.y.again"));
}

TEST(Checkpoint, EveryPolicyLeavesTheSameBits) {
  const Program step = blocks(3);
  for (const RecomputePolicy& policy : recompute_policies()) {
    if (!policy.rule) continue;
    const Program again = checkpoint(step, policy.rule);
    EXPECT_GT(again.ops().size(), step.ops().size()) << policy.name;
    expect_same_values(step, again);
  }
}

TEST(Checkpoint, TwoBlocksTogetherRunAgainFromWhereTheFirstBegins) {
  const Program again = checkpoint(blocks(3), every_nth_block(2, every_op));
  EXPECT_THAT(
      labels_again(again),
      ElementsAre("block2.ln.again", "block2.qkv.again", "block2.attention.again", "block2.up.again", "block0.ln.again",
                  "block0.qkv.again", "block0.attention.again", "block0.up.again", "block0.residual.again",
                  "block1.ln.again", "block1.qkv.again", "block1.attention.again", "block1.up.again"));
  expect_same_values(blocks(3), again);
}

TEST(Checkpoint, SelectivelyOnlyAttentionRunsAgain) {
  const Program again = checkpoint(blocks(2), recompute_policies()[1].rule);
  EXPECT_THAT(labels_again(again), ElementsAre("block1.attention.again", "block0.attention.again"));
  const auto attention = std::ranges::find(again.ops(), "block0.attention.again", &OpCall::label);
  EXPECT_EQ(attention->inputs.front(), named(again, "block0.q"));
}

// The norm updates running averages, which must not happen twice.
TEST(Checkpoint, WhatUpdatesSomethingRunsOnceAndItsResultIsKept) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {6, 4});
  const ValueId w = source(p, "w", DType::f32, {4, 4}, Role::parameter);
  const ValueId dy = source(p, "dy", DType::f32, {6, 4}, Role::gradient);
  const auto channel = [&](const char* name, Role role) { return source(p, name, DType::f32, {4}, role); };
  const ValueId c = gemm(p, {}, f32_math, "block0.gemm", x, w).c;
  const ValueId normed = batch_norm_forward(p, {}, f32_math, "block0.bn", c,
                                            {channel("gamma", Role::parameter), channel("beta", Role::parameter),
                                             channel("running_mean", Role::state), channel("running_var", Role::state)})
                             .y;
  const ValueId y = relu_forward(p, f32_math, "block0.relu", normed);
  (void)differentiate(p, std::array{Seed{y, dy}}, std::array{w});

  const Program again = checkpoint(p, every_nth_block(1, every_op));

  EXPECT_THAT(labels_again(again), ElementsAre("block0.gemm.again", "block0.relu.again"));
  expect_same_values(p, again);
}

TEST(Checkpoint, AForwardWithoutBackwardStaysAsItIs) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {6, 4});
  (void)relu_forward(p, f32_math, "block0.b", relu_forward(p, f32_math, "block0.a", x));
  const Program again = checkpoint(p, every_nth_block(1, every_op));
  EXPECT_EQ(again.to_string(), p.to_string());
}

TEST(Checkpoint, ReadingAgainWhatHasBeenOverwrittenIsRefused) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4, 4});
  const ValueId c = source(p, "c", DType::f32, {4, 4});
  const ValueId dy = source(p, "dy", DType::f32, {4, 4}, Role::gradient);
  const ValueId h = gelu_forward(p, {}, f32_math, "block0.h", c);
  const ValueId y = gelu_forward(p, {}, f32_math, "block0.y", h);
  (void)gemm(p, {.beta = 1.0}, f32_math, "over", x, x, {.c_in = c});
  (void)gelu_backward(p, {}, f32_math, "back", h, dy);
  (void)y;
  EXPECT_EQ(program_error([&] { (void)checkpoint(p, every_nth_block(1, every_op)); }),
            "checkpoint: op 'block0.h' cannot be repeated: 'over' has overwritten 'c'");
}

}  // namespace checkpoint_test
}  // namespace gpubench::testing
