#include "reference/ops/transform/partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "harness/core/error.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/embedding.h"
#include "reference/ops/gemm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/quantize.h"
#include "reference/ops/transform/cut_plan.h"
#include "tests/reference/ops/textbook_run.h"
#include "tests/reference/ops/transform/mesh_step.h"

namespace gpubench::testing {
namespace partition_test {

constexpr Gemm linear{.transpose_b = true};
constexpr Gemm with_bias{.transpose_b = true, .bias = true};

/// x [2, 2] -> columns [2, 4] -> rows [2, 2]: a feed-forward layer without activation.
struct Layer {
  Program program;
  ValueId y;
  Cuts cuts{{"up", {0}}, {"down", {1}}};
};

Layer layer(bool bias) {
  Layer made;
  Program& p = made.program;
  const ValueId x = source(p, "x", DType::f32, {2, 2});
  const ValueId up = source(p, "up", DType::f32, {4, 2}, Role::parameter);
  const ValueId down = source(p, "down", DType::f32, {2, 4}, Role::parameter);
  const ValueId middle = gemm(p, linear, f32_math, "middle", x, up).c;
  GemmOperands operands;
  if (bias) operands.bias = source(p, "bias", DType::f32, {2}, Role::parameter);
  made.y = gemm(p, bias ? with_bias : linear, f32_math, "y", middle, down, operands).c;
  return made;
}

/// Runs a program on sources given by their global names; each rank gets its part.
TextbookRun run_of(const Program& program, const std::map<std::string, std::vector<double>, std::less<>>& sources) {
  TextbookRun run(program);
  for (int index = 0; index < static_cast<int>(program.values().size()); ++index) {
    const Value& value = program.value({index});
    if (!value.source || value.part_of) continue;
    std::vector<double> mine;
    for (std::int64_t i = 0; i < value.spec.shape.elements(); ++i)
      mine.push_back(
          sources.find(value.spec.global_name())->second.at(static_cast<std::size_t>(global_index(value.spec, i))));
    run.set({index}, mine);
  }
  run.run();
  return run;
}

std::vector<double> left_in(const Program& program, TextbookRun& run, const std::string& name) {
  for (const Value& value : program.values()) {
    if (value.spec.name == name) return run.get(program.values_in(value.storage).front());
  }
  throw std::runtime_error("no tensor " + name);
}

std::vector<std::string> kinds_and_labels(const Program& program) {
  std::vector<std::string> found;
  for (const OpCall& op : program.ops()) found.push_back(std::string(op.kind.name) + " " + op.label);
  return found;
}

TEST(TensorParallel, TwoLayersTakeOneReductionBehindTheSecond) {
  const Layer made = layer(false);
  const Program shared = tensor_parallel(made.program, {.ranks = 2}, made.cuts, {}).program;
  EXPECT_EQ(kinds_and_labels(shared), (std::vector<std::string>{"gemm middle@0", "gemm middle@1", "gemm y@0",
                                                                "gemm y@1", "all_reduce y.all_reduce"}));
  EXPECT_EQ(shared.mesh(), Mesh({{"tp", 2}}));
}

// A table of four tokens, also the head. No rank has the logits of all tokens; two numbers per row suffice for the
// loss.
TEST(TensorParallel, AVocabularyIsSharedFromTheTableToTheLoss) {
  Program p;
  const ValueId tokens = source(p, "tokens", DType::i32, {2}), labels = source(p, "labels", DType::i32, {2});
  const ValueId table = source(p, "table", DType::f32, {4, 3}, Role::parameter);
  const ValueId x = embedding_forward(p, "x", table, tokens, {.padding_token = 3});
  const ValueId logits = gemm(p, linear, f32_math, "logits", x, table).c;
  (void)cross_entropy_forward(p, f32_math, "loss", logits, labels);
  const Cuts cuts{{"table", {0}}};
  const Program shared = tensor_parallel(p, {.ranks = 2}, cuts, {}).program;
  EXPECT_EQ(kinds_and_labels(shared),
            (std::vector<std::string>{"embedding_forward x@0", "embedding_forward x@1", "all_reduce x.all_reduce",
                                      "gemm logits@0", "gemm logits@1", "cross_entropy_partial loss.partial@0",
                                      "cross_entropy_partial loss.partial@1", "all_gather loss.lse.all_gather",
                                      "all_gather loss.score.all_gather", "cross_entropy_combine loss@0",
                                      "cross_entropy_combine loss@1"}));
  EXPECT_EQ(shared.op(1).attributes.as<TableRows>(), (TableRows{.first = 2, .vocabulary = 4, .padding_token = 3}));
  EXPECT_EQ(shared.op(6).attributes.as<CrossEntropy>(), (CrossEntropy{.first = 2, .classes = 4}));
  EXPECT_EQ(shared.spec(shared.op(3).output("c")).shape, (Shape{2, 2}));
  const Program scattered = tensor_parallel(p, {.ranks = 2, .scatters_tokens = true}, cuts, {}).program;
  EXPECT_EQ(kinds_and_labels(scattered)[2], "reduce_scatter x.reduce_scatter");
}

// middle = (x0, x1, x0 + x1, x0 - x1), y = (sum of the four, twice the last) + (10, 20).
TEST(TensorParallel, TheBiasIsAddedOnce) {
  const Layer made = layer(true);
  const Program shared = tensor_parallel(made.program, {.ranks = 2}, made.cuts, {}).program;
  TextbookRun run = run_of(
      shared,
      {{"x", {1, 2, 5, 3}}, {"up", {1, 0, 0, 1, 1, 1, 1, -1}}, {"down", {1, 1, 1, 1, 0, 0, 0, 2}}, {"bias", {10, 20}}});
  for (const char* name : {"y@0", "y@1"})
    EXPECT_EQ(left_in(shared, run, name), (std::vector<double>{15, 18, 28, 24})) << name;
}

TEST(TensorParallel, ScatteredTokensAreReducedToTheRanksThatHaveThem) {
  const Layer made = layer(false);
  const Program shared = tensor_parallel(made.program, {2, /*scatters_tokens=*/true, {}}, made.cuts, {}).program;
  EXPECT_EQ(kinds_and_labels(shared).back(), "reduce_scatter y.reduce_scatter");
  TextbookRun run =
      run_of(shared, {{"x", {1, 2, 5, 3}}, {"up", {1, 0, 0, 1, 1, 1, 1, -1}}, {"down", {1, 1, 1, 1, 0, 0, 0, 2}}});
  EXPECT_EQ(left_in(shared, run, "y.reduce_scatter@0"), (std::vector<double>{5, -2}));
  EXPECT_EQ(left_in(shared, run, "y.reduce_scatter@1"), (std::vector<double>{18, 4}));
}

/// y = x w^T of 8-bit copies, with scales by the largest of x and of w.
Program quantized_product() {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 4});
  const ValueId w = source(p, "w", DType::f32, {2, 4}, Role::parameter);
  const Quantized narrow_x = quantize_by_amax(p, DType::f8_e4m3, f32_math, "x.f8", x);
  const Quantized narrow_w = quantize_by_amax(p, DType::f8_e4m3, f32_math, "w.f8", w);
  (void)gemm(p, {.transpose_b = true, .scaled = true}, f32_math, "y", narrow_x.values, narrow_w.values,
             {.scale_a = narrow_x.inverse, .scale_b = narrow_w.inverse});
  return p;
}

// The largest of x is 384, on rank 0; of w 7, on rank 1. 448 has room for 1 and 64 times as much.
TEST(TensorParallel, PartsAreQuantizedByTheLargestOfTheWhole) {
  const Program p = quantized_product();
  const Program shared = tensor_parallel(p, {.ranks = 2}, {{"x", {1}}, {"w", {1}}}, {}).program;
  EXPECT_EQ(kinds_and_labels(shared),
            (std::vector<std::string>{
                "amax x.f8.largest@0", "amax x.f8.largest@1", "all_reduce x.f8.largest.all_reduce",
                "scale_from_amax x.f8.scale@0", "scale_from_amax x.f8.scale@1", "quantize x.f8@0", "quantize x.f8@1",
                "amax w.f8.largest@0", "amax w.f8.largest@1", "all_reduce w.f8.largest.all_reduce",
                "scale_from_amax w.f8.scale@0", "scale_from_amax w.f8.scale@1", "quantize w.f8@0", "quantize w.f8@1",
                "gemm y@0", "gemm y@1", "all_reduce y.all_reduce"}));
  TextbookRun run = run_of(shared, {{"x", {384, 1, 2, 0, 8, 1, 0, 1}}, {"w", {1, 2, 7, 1, 1, 0, 0, -4}}});
  for (const char* rank : {"@0", "@1"}) {
    EXPECT_EQ(left_in(shared, run, std::string("x.f8.scale") + rank), std::vector<double>{1});
    EXPECT_EQ(left_in(shared, run, std::string("w.f8.scale") + rank), std::vector<double>{64});
    EXPECT_EQ(left_in(shared, run, std::string("y") + rank), (std::vector<double>{400, 384, 11, 4}));
  }
  EXPECT_EQ(left_in(shared, run, "w.f8@1"), (std::vector<double>{448, 64, 0, -256}));
}

TEST(TensorParallel, TokensOfEachRankAreGatheredInEightBits) {
  const Program p = quantized_product();
  const Program shared = tensor_parallel(p, {.ranks = 2}, {{"x", {0}}, {"w", {0}}}, {}).program;
  TextbookRun run = run_of(shared, {{"x", {384, 1, 2, 0, 8, 1, 0, 1}}, {"w", {1, 2, 7, 1, 1, 0, 0, -4}}});
  const auto gather = std::ranges::find(shared.ops(), all_gather_kind, &OpCall::kind);
  ASSERT_NE(gather, shared.ops().end());
  EXPECT_EQ(shared.spec(gather->inputs[0]).to_string(), "x.f8@0: f8_e4m3[1, 4]");
  EXPECT_EQ(left_in(shared, run, "y@0"), (std::vector<double>{400, 11}));
  EXPECT_EQ(left_in(shared, run, "y@1"), (std::vector<double>{384, 4}));
}

// sqrt(3^2 + 4^2 + 12^2) = 13: both parts of one gradient, and the other one once.
TEST(TensorParallel, TheNormCountsPartsTogetherAndWhatIsOnAllRanksOnce) {
  Program p;
  const ValueId cut = source(p, "cut", DType::f32, {2}, Role::gradient);
  const ValueId whole = source(p, "whole", DType::f32, {1}, Role::gradient);
  const ValueId norm = gradient_norm(p, f32_math, "norm", std::array{cut, whole});
  (void)clip(p, {.limit = 6.5 + 0.5e-6}, f32_math, "clip", norm, std::array{cut, whole});
  const Program shared = tensor_parallel(p, {.ranks = 2}, {{"cut", {0}}}, {}).program;
  TextbookRun run = run_of(shared, {{"cut", {3, 4}}, {"whole", {12}}});
  for (const char* name : {"norm@0", "norm@1"}) EXPECT_EQ(left_in(shared, run, name), std::vector<double>{13}) << name;
  EXPECT_EQ(left_in(shared, run, "cut@0"), std::vector<double>{1.5});
  EXPECT_EQ(left_in(shared, run, "cut@1"), std::vector<double>{2});
  EXPECT_EQ(left_in(shared, run, "whole@1"), std::vector<double>{6});
}

TEST(TensorParallel, OneRankIsTheStepAsItIs) {
  const Layer made = layer(true);
  const PartitionedStep same = tensor_parallel(made.program, {}, made.cuts, std::array{made.y});
  EXPECT_EQ(same.program.to_string(), made.program.to_string());
  EXPECT_EQ(same.gradients, std::vector{made.y});
}

TEST(TensorParallel, WhatCannotBeCutIsRefusedWithItsReason) {
  const auto refusal = [](const Cuts& cuts, int ranks) {
    const Layer made = layer(false);
    return program_error([&] { (void)tensor_parallel(made.program, {.ranks = ranks}, cuts, {}); });
  };
  EXPECT_EQ(refusal({{"up", {0}}, {"down", {1}}}, 3),
            "partition: up: f32[4, 2] is cut along axis 0, which 3 ranks cannot share equally");
  EXPECT_EQ(refusal({{"gate", {0}}}, 2), "partition: the step has no source 'gate'");
  EXPECT_EQ(refusal({}, 2), "partition: no cuts given; expected at least one");
  const Layer made = layer(false);
  const Program shared = tensor_parallel(made.program, {.ranks = 2}, made.cuts, {}).program;
  EXPECT_EQ(program_error([&] { (void)tensor_parallel(shared, {.ranks = 2}, made.cuts, {}); }),
            "partition: the step has 2 ranks; expected one");
}

// q, k and v of heads of 2 in rows of 6: rank 1 of 2 has the second half of each.
TEST(CutLayout, APackedTensorIsCutSectionBySection) {
  Program p;
  const ValueId qkv = source(p, "qkv", DType::f32, {3, 12});
  const TensorSpec whole = p.spec(qkv);
  std::vector<CutRange> ranges;
  for (const std::int64_t first : {8, 0, 4}) {
    TensorSpec part = tensor("part", DType::f32, {1, 3, 2, 2}, Role::activation);
    part.layout.strides = {36, 12, 2, 1};
    const auto range = range_of(whole, {part, first}, Cut{2});
    ASSERT_TRUE(range.has_value());
    EXPECT_EQ(range->axis, 1);
    EXPECT_EQ(range->start, first);
    ranges.push_back(*range);
  }
  const std::optional<Cut> cut = join(whole, ranges);
  EXPECT_EQ(cut, (Cut{1, {4, 4, 4}}));
  EXPECT_EQ(join(whole, {ranges[0], ranges[1]}), std::nullopt);

  TensorSpec k = tensor("k", DType::f32, {1, 3, 2, 2}, Role::activation);
  k.layout.strides = {36, 12, 2, 1};
  EXPECT_EQ(cut_of_view(whole, *cut, {k, 4}), Cut{2});
  EXPECT_EQ(shrink_view(whole, *cut, 2, Cut{2}, 4, k), 2);
  EXPECT_EQ(k.shape, (Shape{1, 3, 1, 2}));
  EXPECT_EQ(k.layout.strides, (std::vector<std::int64_t>{18, 6, 2, 1}));
}

TEST(CutLayout, ReshapedTensorsAreCutAsTheOriginal) {
  const TensorSpec heads = tensor("o", DType::f32, {2, 3, 4, 5}, Role::activation);
  TensorSpec rows = tensor("rows", DType::f32, {6, 20}, Role::activation);
  EXPECT_EQ(cut_of_view(heads, Cut{2}, {rows, 0}), Cut{1});
  EXPECT_EQ(shrink_view(heads, Cut{2}, 2, Cut{1}, 0, rows), 0);
  EXPECT_EQ(rows.layout.strides, (std::vector<std::int64_t>{10, 1}));
  const TensorSpec all_rows = tensor("rows", DType::f32, {6, 20}, Role::activation);
  EXPECT_EQ(cut_of_view(heads, Cut{1}, {all_rows, 0}), std::nullopt);  // some rows of each sample
  EXPECT_EQ(cut_of_view(heads, Cut{0}, {all_rows, 0}), Cut{0});
}

}  // namespace partition_test
}  // namespace gpubench::testing
