// In every precision that suites name, the check of every op accepts errors up to its bounds and rejects every
// corrupted output.
#include <gtest/gtest.h>

#include "harness/parity/end_to_end.h"
#include "harness/parity/judge.h"
#include "tests/suites/workloads.h"

namespace gpubench {
namespace recipes_test {

Case small_case(std::string suite, std::string workload, Dims dims, std::string recipe) {
  return {std::move(suite), std::move(workload), std::move(dims), std::move(recipe), {}, 1, "small"};
}

// Runs the case op by op and judges each on its actual inputs.
void expect_proven(const Case& c) {
  SCOPED_TRACE(c.id());
  const Program program = testing::program_of(c);
  TextbookMachine machine(program);
  machine.fill_sources(c.id_without_ranks(), 42, program);
  for (int index = 0; index < static_cast<int>(program.ops().size()); ++index) {
    const OpCall& op = program.op(index);
    std::vector<std::vector<std::byte>> read;  // updates overwrite what the op read
    read.reserve(op.inputs.size());
    std::vector<TensorView> inputs, outputs;
    for (const ValueId id : op.inputs) {
      const Value& value = program.value(id);
      const std::byte* first = machine.data(value.storage) + value.offset_bytes;
      read.emplace_back(first, first + value.spec.bytes());
      inputs.emplace_back(value.spec, read.back().data());
    }
    machine.run_op(index, 1);
    for (const ValueId id : op.outputs) outputs.push_back(machine.view(id));
    const OpParity parity = judge(program, index, {inputs, outputs}, {.mode = CheckMode::full}, "check");
    EXPECT_EQ(parity.verdict, Verdict::pass) << op.label << ": " << parity.reason;
    EXPECT_EQ(parity.mutations_rejected, parity.mutations) << op.label;
    EXPECT_GT(parity.mutations, 0) << op.label;
  }
}

TEST(Recipes, EveryProductCanBeProven) {
  for (const char* recipe : {"f64", "f32", "tf32", "bf16", "f16", "f8_hybrid", "f8_hybrid_fast"})
    expect_proven(small_case("gemm", "matmul", {{"m", 24}, {"n", 16}, {"k", 2048}}, recipe));
  for (const char* recipe : {"f32", "tf32", "bf16", "f16", "f8_hybrid"}) {
    for (const char* direction : {"linear_forward", "linear_backward_data", "linear_backward_weight"})
      expect_proven(small_case("gemm", direction, {{"m", 48}, {"n", 32}, {"k", 80}}, recipe));
  }
  for (const char* recipe : {"bf16", "bf16_approx_tanh"}) {
    for (const char* with_gelu : {"linear_bias_gelu_forward", "linear_gelu_backward_data"})
      expect_proven(small_case("gemm", with_gelu, {{"m", 48}, {"n", 32}, {"k", 80}}, recipe));
  }
  for (const char* recipe : {"mxfp8", "nvfp4"})
    expect_proven(small_case("gemm", "block_scaled_matmul", {{"m", 24}, {"n", 16}, {"k", 2048}}, recipe));
  expect_proven(small_case("memory", "quantize", {{"n", 4096}}, "f8_hybrid"));
}

TEST(Recipes, EveryConvolutionAndAttentionCanBeProven) {
  const Dims conv{{"n", 1}, {"h", 9},      {"w", 9},   {"c", 8},        {"k", 8},     {"r", 3},
                  {"s", 3}, {"stride", 2}, {"pad", 1}, {"dilation", 1}, {"groups", 1}};
  for (const char* recipe : {"f32", "tf32", "bf16", "f16"}) {
    for (const char* pass : {"conv2d_forward", "conv2d_backward_data", "conv2d_backward_filter"})
      expect_proven(small_case("conv", pass, conv, recipe));
  }
  for (const char* recipe : {"f32", "bf16", "f16"}) {
    const Dims attention{{"b", 1}, {"h", 2}, {"kv", 1}, {"s", 40}, {"d", 16}};
    expect_proven(small_case("attention", "causal_backward", attention, recipe));
    expect_proven(small_case("attention", "full_forward", attention, recipe));
  }
}

TEST(Recipes, EveryOpOfATrainingStepCanBeProven) {
  for (const char* recipe : {"f32", "tf32", "bf16", "f16", "f8_hybrid"}) {
    const Dims dims{{"b", 2}, {"s", 8}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"vocab", 48}};
    expect_proven(small_case("transformer", "gpt2_train_step", dims, recipe));
    const Dims llama{{"b", 2}, {"s", 8}, {"h", 32}, {"heads", 4}, {"kv", 2}, {"f", 48}};
    expect_proven(small_case("transformer", "llama_block", llama, recipe));
    if (std::string(recipe) == "f8_hybrid") continue;
    const Dims vit{{"n", 2}, {"image", 8}, {"patch", 4}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"classes", 10}};
    expect_proven(small_case("transformer", "vit_train_step", vit, recipe));
    const Dims bert{{"b", 2}, {"s", 21}, {"layers", 1}, {"h", 32}, {"heads", 2}, {"vocab", 48}};
    expect_proven(small_case("transformer", "bert_train_step", bert, recipe));
    const Dims bottleneck{{"n", 2}, {"h", 6}, {"c", 24}, {"width", 8}, {"stride", 2}};
    expect_proven(small_case("convnet", "resnet_block", bottleneck, recipe));
  }
}

TEST(Recipes, LaunchesAndTransfersCanBeProven) {
  expect_proven(small_case("launch", "chain", {{"ops", 5}}, "f32"));
  expect_proven(small_case("link", "pinned_to_device", {{"bytes", 4096}}, "f32"));
}

}  // namespace recipes_test
}  // namespace gpubench
