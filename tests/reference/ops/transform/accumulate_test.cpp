// Micro-batches: summed gradients equal those of the whole batch, and the optimizer runs once.
#include "reference/ops/transform/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/gemm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/differentiate.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace accumulate_test {

using ::testing::ElementsAre;

struct Step {
  Program program;
  std::vector<ValueId> gradients;
};

ValueId batch(Program& p, const std::string& name, DType dtype, Shape shape, Role role = Role::input) {
  TensorSpec spec = tensor(name, dtype, std::move(shape), role);
  spec.placement = Placement::shard(0);
  return p.add(std::move(spec));
}

// x [rows, 4] -> relu(x w1) w2 -> mean cross-entropy over 3 classes; gradients, clip, AdamW.
Step classifier(std::int64_t rows, DType type) {
  Step step;
  Program& p = step.program;
  const Math math = type == DType::f64 ? f64_math : f32_math;
  const ValueId x = batch(p, "x", type, {rows, 4});
  const ValueId labels = batch(p, "labels", DType::i32, {rows});
  const ValueId w1 = source(p, "w1", type, {4, 5}, Role::parameter);
  const ValueId w2 = source(p, "w2", type, {5, 3}, Role::parameter);
  const ValueId h = relu_forward(p, math, "relu", gemm(p, {}, math, "up", x, w1).c);
  const ValueId loss = cross_entropy_forward(p, math, "loss", gemm(p, {}, math, "down", h, w2).c, labels).loss;
  const auto gradients = differentiate(p, std::array{Seed{loss, {}}}, std::array{w1, w2});
  step.gradients = {gradients.at(w1), gradients.at(w2)};
  const ValueId norm = gradient_norm(p, math, "norm", step.gradients);
  const std::vector<ValueId> clipped = clip(p, {.limit = 0.01}, math, "clip", norm, step.gradients);
  const ValueId lr = source(p, "lr", type == DType::f64 ? type : DType::f32, {1}, Role::scalar);
  const ValueId number = source(p, "step", DType::i32, {1}, Role::scalar);
  const DType wide = type == DType::f64 ? type : DType::f32;
  const auto state = [&](const char* name, const Shape& shape) { return source(p, name, wide, shape, Role::state); };
  if (type == DType::bf16) return step;  // AdamW wants f32 weights
  adamw(p, {}, math, "adamw", lr, number,
        std::array{AdamWTensor{w1, clipped[0], state("m1", {4, 5}), state("v1", {4, 5}), {}},
                   AdamWTensor{w2, clipped[1], state("m2", {5, 3}), state("v2", {5, 3}), {}}});
  return step;
}

void fill(TextbookRun& run, const Program& program) {
  for (int i = 0; i < static_cast<int>(program.values().size()); ++i) {
    const Value& value = program.value({i});
    if (!value.source || value.part_of) continue;
    std::vector<double> values = spread(value.spec.shape.elements(), std::hash<std::string>()(value.spec.name));
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (value.spec.role == Role::state) values[k] *= values[k];
      if (value.spec.dtype == DType::i32) values[k] = value.spec.name == "labels" ? static_cast<double>(k % 3) : 3.0;
    }
    run.set({i}, values);
  }
}

// The mean over twelve rows is the average of the means over four: gradients, norm and new weights agree in fp64.
TEST(Accumulate, ThreeMicroBatchesAreOneBatchOfThreeTimesTheRows) {
  const Step whole = classifier(12, DType::f64);
  const Step small = classifier(4, DType::f64);
  const Accumulated three = accumulate(small.program, {.micro_batches = 3, .math = f64_math}, small.gradients);
  TextbookRun want(whole.program);
  fill(want, whole.program);
  want.run();
  TextbookRun got(three.program);
  fill(got, three.program);
  got.run();

  for (const char* name : {"w1'", "w2'", "m1'", "v2'", "norm"})
    expect_near(got.get(named(three.program, name)), want.get(named(whole.program, name)), 1e-13);
  EXPECT_EQ(three.program.spec(named(three.program, "x")).shape, (Shape{12, 4}));
  EXPECT_EQ(three.program.spec(named(three.program, "x.micro2")).shape, (Shape{4, 4}));
}

TEST(Accumulate, TheOptimizerRunsOnceAfterAllMicroBatches) {
  const Step step = classifier(4, DType::f32);
  const Accumulated two = accumulate(step.program, {.micro_batches = 2}, step.gradients);
  EXPECT_THAT(labels_of(two.program),
              ElementsAre("up.micro0", "relu.micro0", "down.micro0", "loss.micro0", "loss.backward.micro0",
                          "down.da.micro0", "down.db.micro0", "down.db.sum", "relu.backward.micro0", "up.db.micro0",
                          "up.db.sum", "up.micro1", "relu.micro1", "down.micro1", "loss.micro1", "loss.backward.micro1",
                          "down.da.micro1", "down.db.micro1", "down.db.sum.micro1", "relu.backward.micro1",
                          "up.db.micro1", "up.db.sum.micro1", "norm", "clip", "adamw"));
}

TEST(Accumulate, GradientsOfSixteenBitsAreAddedUpInF32) {
  const Step step = classifier(4, DType::bf16);
  const Accumulated two = accumulate(step.program, {.micro_batches = 2, .reduction = Reduction::sum}, step.gradients);
  const Program& p = two.program;
  EXPECT_EQ(p.spec(two.gradients[0]).dtype, DType::f32);
  TextbookRun run(p);
  fill(run, p);
  for (int i = 0; i + 2 < static_cast<int>(p.ops().size()); ++i) run.run(i);  // all but norm and clip
  const std::vector<double> sum = run.get(two.gradients[1]);
  const std::vector<double> first = run.get(named(p, "d(w2).micro0"));
  const std::vector<double> second = run.get(named(p, "d(w2).micro1"));
  for (std::size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], round_to(DType::f32, first[i] + second[i]));
  const OpCall& clipped = p.ops().back();
  EXPECT_EQ(p.spec(clipped.inputs[1]).dtype, DType::f32);
  EXPECT_EQ(p.spec(clipped.outputs[0]).dtype, DType::f32);
}

// Column sums 5, 7, 9 of the first two rows and 50, 70, 90 of the others.
TEST(Accumulate, SumsAndAveragesAreWorkedOutByHand) {
  for (const auto& [reduction, want] : {std::pair{Reduction::sum, std::vector<double>{55, 77, 99}},
                                        std::pair{Reduction::average, std::vector<double>{27.5, 38.5, 49.5}}}) {
    Program p;
    const ValueId dy = batch(p, "dy", DType::f32, {2, 3}, Role::gradient);
    const ValueId sum = column_sum(p, f32_math, "sum", dy);
    const Accumulated two = accumulate(p, {.micro_batches = 2, .reduction = reduction}, std::array{sum});
    TextbookRun run(two.program);
    run.set(named(two.program, "dy"), {1, 2, 3, 4, 5, 6, 10, 20, 30, 40, 50, 60});
    run.run();
    EXPECT_EQ(run.get(two.gradients[0]), want);
  }
}

// Momentum 1/2 twice: 0 -> 1/2 of the first batch's mean -> 1/4 of it and 1/2 of the second's.
TEST(Accumulate, AMicroBatchFindsTheRunningAveragesThatTheOneBeforeLeft) {
  Program p;
  const ValueId x = batch(p, "x", DType::f32, {2, 1});
  const ValueId dy = batch(p, "dy", DType::f32, {2, 1}, Role::gradient);
  const auto channel = [&](const char* name, Role role) { return source(p, name, DType::f32, {1}, role); };
  const ValueId gamma = channel("gamma", Role::parameter);
  const BatchNormForward bn = batch_norm_forward(
      p, {.momentum = 0.5}, f32_math, "bn", x,
      {gamma, channel("beta", Role::parameter), channel("mean", Role::state), channel("var", Role::state)});
  const auto gradients = differentiate(p, std::array{Seed{bn.y, dy}}, std::array{gamma});
  const Accumulated two = accumulate(p, {.micro_batches = 2}, std::array{gradients.at(gamma)});
  TextbookRun run(two.program);
  fill(run, two.program);
  run.set(named(two.program, "mean"), {0});
  run.set(named(two.program, "x"), {6, 10, 2, 4});
  run.run();
  EXPECT_EQ(run.get(named(two.program, p.spec(bn.running_mean).name + ".micro1")),
            (std::vector<double>{0.25 * 8 + 0.5 * 3}));
}

TEST(Accumulate, RanksReduceTheSumsAndShardTheWholeBatch) {
  const Step step = classifier(4, DType::f32);
  const Accumulated two = accumulate(step.program, {.micro_batches = 2}, step.gradients);
  const Program ranks = data_parallel(two.program, {.ranks = 2, .bucket_bytes = 1}, two.gradients);
  EXPECT_EQ(ranks.spec(named(ranks, "x@1")).placement, Placement::shard(0, 1, 2));
  std::vector<std::string> order = labels_of(ranks);
  const auto place = [&](const char* label) { return std::ranges::find(order, label) - order.begin(); };
  EXPECT_EQ(place("gradients.bucket0"), place("down.db.sum.micro1@1") + 1);
}

TEST(Accumulate, OneMicroBatchIsTheStepAsItIs) {
  const Step step = classifier(4, DType::f32);
  // Not {}: std::accumulate would be a candidate too.
  const Accumulated one = accumulate(step.program, Accumulation{}, step.gradients);
  EXPECT_EQ(one.program.to_string(), step.program.to_string());
}

TEST(Accumulate, AGradientThatNothingProducesOrThatIsMadeOfAnotherIsRefused) {
  const Step step = classifier(4, DType::f32);
  const auto refusal = [&](std::vector<ValueId> gradients) {
    return program_error([&] { (void)accumulate(step.program, {.micro_batches = 2}, gradients); });
  };
  EXPECT_EQ(refusal({named(step.program, "w1")}), "accumulate: no op produces gradient 'w1'");
  EXPECT_EQ(refusal({named(step.program, "loss.backward"), step.gradients[0]}),
            "accumulate: gradient 'd(w1)' is made of another gradient");
}

}  // namespace accumulate_test
}  // namespace gpubench::testing
