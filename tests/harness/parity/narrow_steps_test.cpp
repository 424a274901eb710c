// Training steps in f16 with a scaled loss, and with 8-bit products, against the same steps without either.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "harness/parity/end_to_end.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/optimizer.h"
#include "tests/suites/workloads.h"

namespace gpubench {
namespace narrow_steps_test {

constexpr std::uint64_t seed = 7;

struct Step {
  const char *suite, *workload;
  Dims dims;
};

const std::vector<Step>& eight_bit_steps() {
  static const std::vector<Step> steps{
      {"transformer", "gpt2_train_step", {{"b", 2}, {"s", 8}, {"layers", 2}, {"h", 32}, {"heads", 2}, {"vocab", 48}}},
      {"transformer",
       "llama_train_step",
       {{"b", 2}, {"s", 8}, {"layers", 1}, {"h", 32}, {"heads", 4}, {"kv", 2}, {"f", 48}, {"vocab", 48}}},
      {"transformer", "llama_block", {{"b", 2}, {"s", 8}, {"h", 32}, {"heads", 4}, {"kv", 2}, {"f", 48}}}};
  return steps;
}

/// Whole models scale the loss; blocks get a scaled gradient.
const std::vector<Step>& f16_steps() {
  static const std::vector<Step> steps{
      eight_bit_steps()[0],
      eight_bit_steps()[1],
      {"transformer", "bert_train_step", {{"b", 2}, {"s", 21}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"vocab", 48}}},
      {"transformer",
       "vit_train_step",
       {{"n", 2}, {"image", 8}, {"patch", 4}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"classes", 10}}},
      {"convnet", "resnet_train_step", {{"n", 2}, {"image", 64}, {"width", 8}, {"depth", 14}, {"classes", 10}}},
      {"moe",
       "mixtral_train_step",
       {{"b", 2},
        {"s", 8},
        {"layers", 1},
        {"h", 32},
        {"heads", 4},
        {"kv", 2},
        {"f", 24},
        {"experts", 4},
        {"k", 2},
        {"vocab", 48}}}};
  return steps;
}

Case case_of(const Step& step, std::string recipe) {
  return {step.suite, step.workload, step.dims, std::move(recipe), {}, 1, "small", Tier::smoke, CacheMode::step};
}

std::map<std::string, ValueId> by_name(const Program& program) {
  std::map<std::string, ValueId> values;
  for (int i = 0; i < static_cast<int>(program.values().size()); ++i) values[program.spec({i}).name] = {i};
  return values;
}

/// Without rounding, `narrow` must leave every weight and moment that `plain` leaves.
void expect_same_updates_in_fp64(const Program& plain, const Program& narrow) {
  const Program wide_plain = widen(plain), wide_narrow = widen(narrow);
  TextbookMachine want(wide_plain), got(wide_narrow);
  want.fill_sources("the same", seed, plain);
  got.fill_sources("the same", seed, narrow);
  const auto theirs = by_name(wide_narrow);
  int updates = 0;
  for (const auto& [name, id] : by_name(wide_plain)) {
    const Value& value = wide_plain.value(id);
    if (!value.source || value.part_of) continue;
    const Storage& storage = wide_plain.storage(value.storage);  // inputs are rounded to the types of their recipe
    std::memcpy(got.data(wide_narrow.value(theirs.at(name)).storage), want.data(value.storage),
                static_cast<std::size_t>(storage.bytes));
  }
  want.run();
  got.run();
  for (const auto& [name, id] : by_name(wide_plain)) {
    const Value& value = wide_plain.value(id);
    if (!value.updates || value.spec.role == Role::gradient) continue;
    ++updates;
    const TensorView expected = want.view(id), found = got.view(theirs.at(name));
    for (std::int64_t e = 0; e < expected.shape().elements(); ++e)
      ASSERT_NEAR(found[e], expected[e], 1e-11 * std::max(1.0, std::fabs(expected[e]))) << name << "[" << e << "]";
  }
  EXPECT_GT(updates, 20);
}

void expect_within_the_spread_of_correct_runs(const Case& c) {
  const Program program = testing::program_of(c);
  TextbookMachine machine(program);
  machine.fill_sources(c.id_without_ranks(), seed, program);
  machine.run();
  int parameters = 0;
  for (const EndToEndResult& result :
       end_to_end(program, c.id_without_ranks(), seed, [&](ValueId id) { return machine.view(id); })) {
    EXPECT_TRUE(result.passed()) << result.tensor << ": error " << result.error << ", allowed " << result.allowed
                                 << ", norm " << result.norm;
    parameters += result.role == Role::parameter ? 1 : 0;
  }
  EXPECT_GT(parameters, 5);
}

TEST(ScaledLoss, UpdatesAreThoseOfTheStepWithoutAScaleInFp64) {
  for (const Step& step : f16_steps()) {
    SCOPED_TRACE(step.workload);
    const Program scaled = testing::program_of(case_of(step, "f16"));
    EXPECT_TRUE(by_name(scaled).contains("loss_scale'"));
    expect_same_updates_in_fp64(testing::program_of(case_of(step, "bf16")), scaled);
  }
}

TEST(ScaledLoss, AStepInF16StaysWithinTheSpreadOfCorrectRuns) {
  for (const Step& step : f16_steps()) {
    SCOPED_TRACE(step.workload);
    expect_within_the_spread_of_correct_runs(case_of(step, "f16"));
  }
}

// A scale of 2^125 makes every f16 gradient infinite or NaN.
TEST(ScaledLoss, AnOverflowLeavesWeightsAndMomentsAsTheyWereAndHalvesTheScale) {
  for (const Step& step : f16_steps()) {
    SCOPED_TRACE(step.workload);
    const Program program = testing::program_of(case_of(step, "f16"));
    const auto values = by_name(program);
    TextbookMachine before(program), after(program);
    for (TextbookMachine* machine : {&before, &after}) machine->fill_sources("an overflow", seed, program);
    const float scale = 0x1p125F;
    std::memcpy(after.data(program.value(values.at("loss_scale")).storage), &scale, sizeof(scale));
    for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
      if (program.op(op).phase == Phase::setup) before.run_op(op);
    }
    after.run();

    int updated = 0;
    for (const OpCall& op : program.ops()) {
      if (op.kind.name != "adamw" && op.kind.name != "sgd") continue;
      for (const ValueId id : op.outputs) {
        const TensorView was = before.view(id), is = after.view(id);  // both at the newest version's place
        for (std::int64_t e = 0; e < is.shape().elements(); ++e) ASSERT_EQ(is[e], was[e]) << program.spec(id).name;
        ++updated;
      }
    }
    EXPECT_GT(updated, 20);
    EXPECT_EQ(after.view(values.at("unscale.found_inf"))[0], 1.0);
    EXPECT_EQ(after.view(values.at("loss_scale'"))[0], 0x1p124);
    EXPECT_EQ(after.view(values.at("loss_scale.tracker'"))[0], 0.0);
  }
}

// Powers of two are removed exactly, and nothing is clamped.
TEST(EightBitProducts, UpdatesAreThoseOfTheStepIn16BitsInFp64) {
  for (const Step& step : eight_bit_steps()) {
    SCOPED_TRACE(step.workload);
    expect_same_updates_in_fp64(testing::program_of(case_of(step, "bf16")),
                                testing::program_of(case_of(step, "f8_hybrid")));
  }
}

TEST(EightBitProducts, AStepStaysWithinTheSpreadOfCorrectRuns) {
  for (const Step& step : eight_bit_steps()) {
    SCOPED_TRACE(step.workload);
    expect_within_the_spread_of_correct_runs(case_of(step, "f8_hybrid"));
  }
}

struct Operand {
  DType dtype;
  bool dense;  ///< along the axis that is summed over
};

Operand operand_of(const Program& program, const OpCall& product, const char* name, bool rows) {
  const TensorSpec& spec = program.spec(product.input(name));
  return {spec.dtype, spec.layout.strides[rows ? 0 : 1] == 1};
}

// Two blocks of four linear layers; the head and the attention stay in 16 bits.
TEST(EightBitProducts, LinearLayersReadE4m3AndGradientsE5m2AlongTheirSums) {
  const Program program = testing::program_of(case_of(eight_bit_steps()[0], "f8_hybrid"));
  int forward = 0, backward = 0, wide = 0;
  for (const OpCall& op : program.ops()) {
    if (op.kind != gemm_kind) continue;
    const Gemm& gemm = op.attributes.as<Gemm>();
    if (!gemm.scaled) {
      EXPECT_TRUE(op.label.starts_with("logits")) << op.label;
      ++wide;
      continue;
    }
    const Operand a = operand_of(program, op, "a", gemm.transpose_a);
    const Operand b = operand_of(program, op, "b", !gemm.transpose_b);
    EXPECT_TRUE(a.dense && b.dense) << op.label;
    EXPECT_EQ(b.dtype, DType::f8_e4m3) << op.label;
    EXPECT_EQ(program.spec(op.output("c")).dtype, DType::bf16) << op.label;
    (a.dtype == DType::f8_e4m3 ? forward : backward) += 1;
    EXPECT_TRUE(a.dtype == DType::f8_e4m3 || a.dtype == DType::f8_e5m2) << op.label;
  }
  EXPECT_EQ(forward, 2 * 4);
  EXPECT_EQ(backward, 2 * 4 * 2);
  EXPECT_EQ(wide, 3);
}

TEST(EightBitProducts, RecomputationRepeatsQuantizationAndNoTransposedCopy) {
  const auto count = [](std::vector<std::string> modes, const OpKind& kind) {
    Case c = case_of(eight_bit_steps()[0], "f8_hybrid");
    c.modes = std::move(modes);
    const Program program = testing::program_of(c);
    return std::ranges::count(program.ops(), kind, &OpCall::kind);
  };
  EXPECT_EQ(count({}, reorder_kind), 2 * 4 * 3);
  EXPECT_EQ(count({"recompute"}, reorder_kind), 2 * 4 * 3);
  EXPECT_GT(count({"recompute"}, gemm_kind), count({}, gemm_kind));
}

}  // namespace narrow_steps_test
}  // namespace gpubench
