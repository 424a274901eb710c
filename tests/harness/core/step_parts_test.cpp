#include "harness/core/step_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpubench {
namespace step_parts_test {

using ::testing::ElementsAre;
using ::testing::Field;

TEST(StepParts, ALayerIsTheFirstPartOfALabel) {
  for (const auto& [label, layer] : {std::pair{"block0.qkv.da", "block0"},
                                     {"block12.ln1+block12.qkv", "block12"},
                                     {"grad.block0.residual1", "block0"},
                                     {"loss", "loss"},
                                     {"loss+loss.backward", "loss"},
                                     {"adamw@3", "adamw"},
                                     {"gradients.bucket0@1", "gradients"}})
    EXPECT_EQ(layer_of(label), layer) << label;
}

TEST(StepParts, TheLayerOfAnOpIsNamedWhereThereAreSeveral) {
  Program p;
  const ValueId x = p.add(tensor("x", DType::f32, {4}, Role::input));
  const auto append = [&](const char* label) {
    const ValueId y = p.reserve(tensor(std::string("of ") + label, DType::f32, {4}, Role::activation));
    p.append({OpKind{"copy", "x", "y"}, {}, {}, {x}, {y}, label});
  };
  append("block0.up");
  append("block0.down");
  EXPECT_EQ(in_layer(p, p.op(1)), "");
  append("block1.up");
  EXPECT_EQ(in_layer(p, p.op(1)), " in layer block0");
  EXPECT_EQ(in_layer(p, p.op(2)), " in layer block1");
}

// Four ops of a step of 100 ns.
std::vector<OpShare> ops() {
  return {{"block0.qkv", "gemm", "", 10.0, 0.10, 1000.0, 100.0},
          {"block0.ln", "norm", "", 5.0, 0.05, 50.0, 80.0},
          {"block1.qkv", "gemm", "", 30.0, 0.30, 2000.0, 100.0},
          {"block0.qkv.db", "gemm", "", 20.0, 0.20, 1000.0, 120.0}};
}

TEST(StepParts, KindsComeByTimeAndLayersInTheOrderOfTheProgram) {
  const std::vector<StepPart> kinds = parts_by_kind(ops());
  ASSERT_EQ(kinds.size(), 2U);
  EXPECT_EQ(kinds[0].name, "gemm");
  EXPECT_EQ(kinds[0].ops, 3);
  EXPECT_DOUBLE_EQ(kinds[0].median_ns, 60.0);
  EXPECT_DOUBLE_EQ(kinds[0].share, 0.6);
  EXPECT_DOUBLE_EQ(kinds[0].flop, 4000.0);
  EXPECT_DOUBLE_EQ(kinds[0].bytes, 320.0);
  EXPECT_EQ(kinds[0].largest, "block1.qkv");
  EXPECT_DOUBLE_EQ(kinds[0].flop_per_s(), 4000.0 / 60e-9);

  const std::vector<StepPart> layers = parts_by_layer(ops());
  EXPECT_THAT(layers, ElementsAre(Field(&StepPart::name, "block0"), Field(&StepPart::name, "block1")));
  EXPECT_DOUBLE_EQ(layers[0].median_ns, 35.0);
  EXPECT_EQ(layers[0].largest, "block0.qkv.db");
}

TEST(StepParts, WithoutTimesTheMostWorkIsTheLargest) {
  std::vector<OpShare> untimed = ops();
  for (OpShare& op : untimed) op.median_ns = 0.0;
  EXPECT_EQ(parts_by_layer(untimed)[0].largest, "block0.qkv");
  EXPECT_EQ(parts_by_layer(untimed)[0].flop_per_s(), 0.0);
}

TEST(StepParts, UtilizationIsOfAnArithmeticPeakOnly) {
  Derived step;
  EXPECT_EQ(utilization(step, 1e12), std::nullopt);
  step.peak.emplace();
  step.peak->limit = "bf16";
  step.peak->peak = 4e12;
  EXPECT_DOUBLE_EQ(*utilization(step, 1e12), 0.25);
  step.peak->limit = "memory";
  EXPECT_EQ(utilization(step, 1e12), std::nullopt);
}

TEST(StepParts, WorkThatIsDoneTwiceIsNotTheModels) {
  Case c;
  EXPECT_EQ(utilization_name(c), "MFU");
  c.modes = {recompute_mode};
  EXPECT_EQ(utilization_name(c), "HFU");
}

// A step without an op set: op `name` reads and writes the given values.
void op(Program& p, const char* name, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
        Phase phase = Phase::timed) {
  static constexpr OpKind any{"any"};
  p.begin(phase);
  p.append({any, {}, Math{}, std::move(inputs), std::move(outputs), name});
}

TEST(StepParts, MemoryIsListedByPurpose) {
  Program p;
  const auto spec = [](const char* name, std::int64_t elements, Role role) {
    return tensor(name, DType::f32, {elements}, role);
  };
  const ValueId x = p.add(spec("x", 1, Role::input));
  const ValueId master = p.add(spec("w.master", 2, Role::parameter));
  const ValueId w = p.reserve(spec("w", 3, Role::parameter));
  op(p, "copy", {master}, {w}, Phase::setup);
  const ValueId m = p.add(spec("m", 4, Role::state));
  const ValueId h = p.reserve(spec("h", 5, Role::activation));
  const ValueId mean = p.reserve(spec("mean", 6, Role::statistic));
  const ValueId y = p.reserve(spec("y", 7, Role::activation));
  op(p, "forward", {x, w}, {h, mean});
  op(p, "more", {h}, {y});
  const ValueId dh = p.reserve(spec("dh", 8, Role::gradient));
  const ValueId dw = p.reserve(spec("dw", 9, Role::gradient));
  op(p, "backward", {h, mean}, {dh});
  op(p, "backward.w", {dh, x}, {dw});
  const ValueId clipped = p.update(dw, "dw'");
  op(p, "clip", {dw}, {clipped});
  op(p, "optimizer", {clipped, master, m}, {p.update(master, "w.master'"), p.update(m, "m'"), p.update(w, "w'")});

  const auto is = [](const char* kind, std::int64_t elements) {
    return testing::AllOf(Field(&MemoryPart::kind, kind), Field(&MemoryPart::bytes, 4 * elements));
  };
  EXPECT_THAT(memory_by_kind(p), ElementsAre(is("weights", 3), is("master weights", 2), is("gradients", 9),
                                             is("optimizer state", 4), is("saved activations", 5 + 6),
                                             is("other activations", 7), is("other gradients", 8), is("inputs", 1)));
}

}  // namespace step_parts_test
}  // namespace gpubench
