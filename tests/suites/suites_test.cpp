// Properties of every suite: programs that build, unique ids, tiers within their budget.
#include "suites/suites.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <regex>
#include <set>

#include "harness/plan/plan.h"
#include "reference/ops/batch_norm.h"
#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/transform/fuse.h"

namespace gpubench {
namespace {

std::vector<PlannedCase> cases(Tier tier, std::vector<std::string> filters = {}) {
  Selection selection;
  selection.tier = tier;
  selection.filters = std::move(filters);
  return plan_cases(all_suites(), selection);
}

PlannedCase only(const std::string& id) {
  std::vector<PlannedCase> found = cases(Tier::large, {"^" + id + "$"});
  EXPECT_EQ(found.size(), 1U) << id;
  return found.at(0);
}

// 16 s: the only test that builds all large tiers.
TEST(Suites, EveryCaseOfEveryTierBuildsAndHasAUniqueId) {
  std::set<std::string> ids;
  for (const PlannedCase& planned : cases(Tier::large)) {
    EXPECT_TRUE(ids.insert(planned.id()).second) << planned.id();
    EXPECT_GT(planned.cost.bytes, 0.0) << planned.id();
    EXPECT_GT(planned.bytes, 0) << planned.id();
    EXPECT_FALSE(planned.c.label.empty()) << planned.id();
  }
  EXPECT_GT(ids.size(), 200U);
}

// suites/README.md and users of `list` find a model by its name: a word with a digit or a dash.
TEST(Suites, EveryShapeOfATrainingOpSaysWhoseItIs) {
  const std::regex known(R"((.*[ ,])?([a-z][a-z0-9.]*[0-9-][a-z0-9.-]*|deepbench|edge|square)([ ,:].*)?)");
  const std::set<std::string> of_sizes{"optimizer", "memory", "link", "launch", "collectives", "variants"};
  for (const Suite& suite : all_suites()) {
    if (of_sizes.contains(suite.name)) continue;
    for (const auto& workload : suite.workloads) {
      for (const Point& point : workload->grid().points)
        EXPECT_TRUE(std::regex_match(point.label, known)) << workload->info().name << ": " << point.label;
    }
  }
}

TEST(Suites, ALowerTierIsContainedInTheHigherOnes) {
  std::set<std::string> quick;
  for (const PlannedCase& planned : cases(Tier::quick)) quick.insert(planned.id());
  for (const PlannedCase& planned : cases(Tier::smoke)) EXPECT_TRUE(quick.contains(planned.id())) << planned.id();
}

TEST(Suites, TheTiersOfTheProcessorKeepTheirSize) {
  // 20 s and 3 minutes on two cores, in the CPU backend's recipes, at 0.12 s and 0.37 s per case.
  Selection selection;
  selection.default_precisions = {"f32", "bf16", "mxfp8", "nvfp4"};
  selection.tier = Tier::smoke;
  EXPECT_LE(plan_cases(all_suites(), selection).size(), 170U);
  selection.tier = Tier::quick;
  EXPECT_LE(plan_cases(all_suites(), selection).size(), 478U);
}

// Batches of all ranks if each has one; else the shared batch. GPT-2's stages: 8 micro-batches of a sequence of 64
// tokens.
TEST(Suites, ItemsOfScalingAreTheTokensThatAllRanksTrainOn) {
  Selection selection;
  selection.suites = {"scaling"};
  selection.tier = Tier::smoke;
  selection.ranks = {2};
  std::map<std::string, double> items;
  for (const PlannedCase& planned : plan_cases(all_suites(), selection))
    items[planned.c.workload] = planned.workload->items(planned.c);
  EXPECT_EQ(items, (std::map<std::string, double>{{"gpt2_weak", 2.0 * 4 * 64},
                                                  {"gpt2_strong", 4.0 * 64},
                                                  {"gpt2_stages", 8.0 * 64},
                                                  {"llama_shared", 2.0 * 64},
                                                  {"llama_sequences", 2.0 * 64}}));
}

// A step without the dimension is one micro-batch and has one id.
TEST(Suites, AnyTrainingStepOfLayersTakesMicroBatches) {
  Selection selection;
  selection.suites = {"moe", "transformer"};
  selection.tier = Tier::quick;
  selection.precisions = {"f32"};
  selection.filters = {"(mixtral|vit|llama)_train_step"};
  const std::vector<PlannedCase> once = plan_cases(all_suites(), selection);
  selection.axes = {{"micro", {1, 3}}};
  const std::vector<PlannedCase> both = plan_cases(all_suites(), selection);
  ASSERT_EQ(both.size(), 2 * once.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(both[2 * i].id(), once[i].id());
    EXPECT_EQ(both[2 * i + 1].c.dims.back(), (std::pair<std::string, std::int64_t>{"micro", 3}));
    EXPECT_EQ(both[2 * i + 1].workload->items(both[2 * i + 1].c), 3.0 * once[i].workload->items(once[i].c));
    EXPECT_GT(both[2 * i + 1].cost.flop, 2.5 * once[i].cost.flop);
  }
}

// cuBLAS's TN, NN and NT in columns: [512, 16] over 500000, rows as columns.
TEST(Suites, DeepBenchsProductsAreLinearLayersInTheThreeDirections) {
  using suites::Direction;
  const auto forward = suites::deepbench_products(Direction::forward);
  const auto data = suites::deepbench_products(Direction::backward_data);
  const auto weight = suites::deepbench_products(Direction::backward_weight);
  EXPECT_EQ(forward.size() + data.size() + weight.size(), 160U);
  const auto has = [](const std::vector<Point>& points, const Dims& dims) {
    return std::ranges::any_of(points, [&](const Point& point) { return point.dims == dims; });
  };
  EXPECT_TRUE(has(forward, {{"m", 16}, {"n", 512}, {"k", 500000}}));
  EXPECT_TRUE(has(data, {{"m", 16}, {"n", 500000}, {"k", 512}}));
  EXPECT_TRUE(has(weight, {{"m", 1024}, {"n", 7435}, {"k", 3072}}));
  EXPECT_EQ(suites::deepbench_convolutions().size(), 90U);
}

// Selecting a suite by name, on any device, must yield cases without --tier.
TEST(Suites, TheSmokeTierHasCasesOfEverySuiteInTheRecipesOfAProcessor) {
  Selection selection;
  selection.default_precisions = {"f32", "bf16"};
  selection.tier = Tier::smoke;
  for (const Suite& suite : all_suites()) {
    selection.suites = {suite.name};
    EXPECT_FALSE(plan_cases(all_suites(), selection).empty()) << suite.name;
  }
}

/// Count of each fused op in a case if a backend claims all.
std::map<std::string, int> fused_ops_of(const PlannedCase& planned) {
  std::vector<FusionClaim> claims;
  for (const FusionRule& rule : fusion_rules()) claims.push_back({rule.kind});
  std::map<std::string, int> counts;
  const Program fused = fuse(planned.workload->build(planned.c), claims).program;
  for (const OpCall& op : fused.ops()) {
    for (const FusionClaim& claim : claims) counts[std::string(op.kind.name)] += claim.kind == op.kind ? 1 : 0;
  }
  std::erase_if(counts, [](const auto& count) { return count.second == 0; });
  return counts;
}

// Mixed precision has two optimizer steps (with and without copies), each fused with the clip. A block has four linear
// layers with a bias: up's bias gradient is fused with dz's product, those of qkv, attention_out and down with their
// weight gradients. The first of two residual sums meets ln2. Both norms' gradients join a residual's.
TEST(Suites, ATransformersBlockFusesOneBiasGradientWithGeluAndThreeWithTheWeights) {
  std::map<std::string, int> one{{"residual_norm_forward", 1},
                                 {"gemm_gelu_bias_gradient", 1},
                                 {"gemm_weight_bias_gradient", 3},
                                 {"clip_adamw", 1},
                                 {"residual_norm_backward", 2}};
  EXPECT_EQ(fused_ops_of(only("transformer/gpt2_block/b=1,s=256,h=256,heads=4/f32/x1")), one);
  one["clip_adamw"] = 2;
  EXPECT_EQ(fused_ops_of(only("transformer/gpt2_block/b=1,s=256,h=256,heads=4/bf16/x1")), one);
}

TEST(Suites, OnTwoRanksEachFusesItsOwn) {
  Selection selection;
  selection.ranks = {2};
  selection.filters = {"^transformer/gpt2_block/b=1,s=256,h=256,heads=4/f32/x2$"};
  const std::vector<PlannedCase> found = plan_cases(all_suites(), selection);
  ASSERT_EQ(found.size(), 1U);

  EXPECT_EQ(fused_ops_of(found[0]), (std::map<std::string, int>{{"residual_norm_forward", 2},
                                                                {"gemm_gelu_bias_gradient", 2},
                                                                {"gemm_weight_bias_gradient", 6},
                                                                {"clip_adamw", 2},
                                                                {"residual_norm_backward", 4}}));
}

// 12 layers. Residual sums meet ln2, the next ln1 or ln_f, and the embeddings' sum meets the first ln1. The head has no
// bias. Every sum but the last has a gradient along the residual, the embeddings' from ln1 and the first block.
TEST(Suites, ATransformersTrainingStepFusesEveryBiasGradient) {
  EXPECT_EQ(fused_ops_of(only("transformer/gpt2_train_step/b=4,s=1024,layers=12,h=768,heads=12,vocab=50304/bf16/x1")),
            (std::map<std::string, int>{{"residual_norm_forward", 25},
                                        {"cross_entropy_forward_backward", 1},
                                        {"gemm_gelu_bias_gradient", 12},
                                        {"gemm_weight_bias_gradient", 36},
                                        {"clip_adamw", 2},
                                        {"residual_norm_backward", 24},
                                        {"embedding_backward_add", 1}}));
}

// A bottleneck has three convolutions with norm and ReLU, the last with the shortcut added; the first of each of four
// stages also has a convolution and norm in the shortcut. Each ReLU's gradient meets its norm's. 16 bottlenecks and a
// stem; only the head has a bias.
TEST(Suites, AResnetFusesEveryConvolutionWithItsNormAndRelu) {
  EXPECT_EQ(fused_ops_of(only("convnet/resnet_block/n=4,h=56,c=64,width=64,stride=1/f32/x1")),
            (std::map<std::string, int>{{"conv2d_batch_norm_forward", 4}, {"batch_norm_relu_backward", 3}}));
  EXPECT_EQ(fused_ops_of(only("convnet/resnet_block/n=4,h=7,c=2048,width=512,stride=1/f32/x1")),
            (std::map<std::string, int>{{"conv2d_batch_norm_forward", 3}, {"batch_norm_relu_backward", 3}}));
  EXPECT_EQ(fused_ops_of(only("convnet/resnet_train_step/n=32,image=224,width=64,depth=50,classes=1000/f32/x1")),
            (std::map<std::string, int>{{"conv2d_batch_norm_forward", 53},
                                        {"batch_norm_relu_backward", 49},
                                        {"cross_entropy_forward_backward", 1},
                                        {"gemm_weight_bias_gradient", 1}}));
}

// Of 16 bottlenecks, all but the last have two readers, whose gradients are added. Each residual reads the sum's
// gradient.
TEST(Suites, AResnetsSumsOfGradientsGoWithTheReluBehindThem) {
  const PlannedCase step = only("convnet/resnet_train_step/n=32,image=224,width=64,depth=50,classes=1000/f32/x1");
  const std::array claims{FusionClaim{batch_norm_relu_backward_kind, true}};
  int sums = 0, stored = 0;
  const Program fused = fuse(step.workload->build(step.c), claims).program;
  for (const OpCall& op : fused.ops()) {
    sums += op.kind == batch_norm_relu_backward_kind && op.attributes.has("dy2") ? 1 : 0;
    stored += op.kind == batch_norm_relu_backward_kind && op.attributes.has("dr") ? 1 : 0;
  }
  EXPECT_EQ(sums, 15);
  EXPECT_EQ(stored, 16);
}

TEST(Suites, EightBitOperandsComeWithScalesAndLieAlongTheAxisThatIsSummedOver) {
  const PlannedCase planned = only("gemm/linear_backward_weight/m=256,n=2304,k=768/f8_hybrid/x1");
  const Program program = planned.workload->build(planned.c);
  ASSERT_EQ(program.ops().size(), 1U);
  const OpCall& op = program.op(0);
  ASSERT_EQ(op.inputs.size(), 4U);
  const TensorSpec& dy = program.spec(op.inputs[0]);
  EXPECT_EQ(dy.dtype, DType::f8_e5m2);
  EXPECT_EQ(dy.layout.strides, (std::vector<std::int64_t>{1, 256}));
  EXPECT_EQ(program.spec(op.inputs[1]).dtype, DType::f8_e4m3);
  EXPECT_EQ(program.spec(op.inputs[1]).layout.strides, (std::vector<std::int64_t>{1, 256}));
  for (const int scale : {2, 3}) EXPECT_EQ(program.spec(op.inputs[static_cast<std::size_t>(scale)]).shape, Shape{1});
  EXPECT_EQ(program.spec(op.outputs[0]).dtype, DType::bf16);
}

TEST(Suites, BlocksAreScaledAlongWhatIsSummedOverAndNvfp4sTensorsAsWell) {
  for (const char* recipe : {"mxfp8", "nvfp4"}) {
    const bool mx = std::string(recipe) == "mxfp8";
    const PlannedCase planned = only(std::string("gemm/block_scaled_matmul/m=256,n=2304,k=768/") + recipe + "/x1");
    const Program program = planned.workload->build(planned.c);
    const OpCall& op = program.op(0);
    EXPECT_EQ(program.spec(op.input("blocks_b")).shape, (Shape{2304, mx ? 24 : 48})) << recipe;
    EXPECT_EQ(program.spec(op.input("blocks_b")).dtype, mx ? DType::u8 : DType::f8_e4m3);
    EXPECT_EQ(op.inputs.size(), mx ? 4U : 6U);
    EXPECT_EQ(program.spec(op.outputs[0]).dtype, DType::bf16);
  }
}

TEST(Suites, FastAccumulationIsNotAskedOfSumsThatItCannotHold) {
  EXPECT_TRUE(cases(Tier::large, {"k=65536/f8_hybrid_fast", "k=500000/f8_hybrid_fast"}).empty());
  EXPECT_EQ(cases(Tier::large, {"k=65536/f8_hybrid/"}).size(), 1U);
}

TEST(Suites, TransfersHaveOneEndInTheMemoryThatTheyAreNamedAfter) {
  const auto ends = [](const std::string& workload) {
    const PlannedCase planned = only("link/" + workload + "/bytes=4096/f32/x1");
    const Program program = planned.workload->build(planned.c);
    EXPECT_EQ(program.bytes(), 2 * 4096) << workload;
    return std::pair(program.storages()[0].memory, program.storages()[1].memory);
  };
  EXPECT_EQ(ends("pinned_to_device"), std::pair(Memory::pinned_host, Memory::device));
  EXPECT_EQ(ends("device_to_pageable"), std::pair(Memory::device, Memory::pageable_host));
  EXPECT_EQ(ends("peer_to_device"), std::pair(Memory::peer, Memory::device));
}

TEST(Suites, EveryWorkloadNamesKnownRecipes) {
  for (const Suite& suite : all_suites()) {
    for (const auto& workload : suite.workloads) {
      for (const std::string& name : workload->grid().recipes) EXPECT_EQ(recipe(name).name, name);
    }
  }
}

TEST(Suites, ALinearLayerCountsTwoFlopPerMultiplyAddAndEachTensorOnce) {
  const PlannedCase planned = only("gemm/linear_forward/m=256,n=2304,k=768/bf16/x1");

  EXPECT_DOUBLE_EQ(planned.cost.flop, 2.0 * 256 * 2304 * 768);
  EXPECT_DOUBLE_EQ(planned.cost.bytes, 2.0 * (256.0 * 768 + 2304.0 * 768 + 256.0 * 2304));
}

TEST(Suites, ResNet50sConvolutionsAddUpToItsPublishedWork) {
  // 53 convolutions, 4.087 G multiply-adds per image; occurrences of each layer from torchvision's resnet50 v1.5.
  const std::vector<double> occurrences{1, 4, 1, 3, 2, 1, 1, 1, 4, 3, 3, 1, 1, 1, 6, 5, 5, 1, 1, 1, 3, 2, 2};
  std::vector<PlannedCase> layers = cases(Tier::large, {"^conv/conv2d_forward/n=32,.*groups=1/f32/x1$"});
  std::erase_if(layers, [](const PlannedCase& planned) { return planned.c.label != "resnet50"; });
  ASSERT_EQ(layers.size(), occurrences.size());
  double flop = 0.0;
  for (std::size_t i = 0; i < layers.size(); ++i) flop += occurrences[i] * layers[i].cost.flop / 32.0;

  EXPECT_NEAR(flop / 2.0 / 1e9, 4.087, 0.001);
}

TEST(Suites, AGpt2BlockStepDoesThreeTimesTheWorkOfItsForward) {
  // A block's forward: 24 t h^2 for four linear layers, 4 t s h (s + 1) / (2 s) for causal attention; backward twice
  // that, attention 2.5 times. Norms, AdamW and biases add a little.
  const double t = 512, s = 512, h = 768;
  const double linear = 24 * t * h * h;
  const double attention = 4 * t * s * h * (s + 1) / (2 * s);
  const PlannedCase planned = only("transformer/gpt2_block/b=1,s=512,h=768,heads=12/f32/x1");

  EXPECT_GT(planned.cost.flop, 3.0 * linear + 3.5 * attention);
  EXPECT_LT(planned.cost.flop, 1.05 * (3.0 * linear + 3.5 * attention));
}

TEST(Suites, RotaryMovesItsElementsTwiceAndItsTablesOnce) {
  for (const std::string workload : {"rotary_forward", "rotary_backward", "rotary_interleaved_forward"}) {
    const PlannedCase planned = only("norm/" + workload + "/b=1,s=8192,h=32,d=128/bf16/x1");

    EXPECT_EQ(planned.cost.bytes, 2.0 * (8192.0 * 32 * 128) * 2 + 2.0 * (8192 * 64) * 4);
    EXPECT_EQ(planned.cost.flop, 6.0 * 8192 * 32 * 64);
  }
}

TEST(Suites, MixedPrecisionKeepsMasterWeightsAndTheirLowPrecisionCopiesConsistent) {
  const PlannedCase planned = only("transformer/gpt2_block/b=1,s=256,h=256,heads=4/bf16/x1");
  const Program program = planned.workload->build(planned.c);
  int casts = 0;
  for (const OpCall& op : program.ops()) {
    if (op.phase != Phase::setup) continue;
    EXPECT_EQ(op.kind.name, "cast");
    EXPECT_TRUE(program.is_state(program.value(op.outputs[0]).storage));
    ++casts;
  }
  EXPECT_EQ(casts, 8);  // four matrices and four biases; norm parameters are f32
}

TEST(Suites, TheGradientOfPackedQkvIsPackedToo) {
  const PlannedCase planned = only("transformer/gpt2_block/b=1,s=256,h=256,heads=4/f32/x1");
  const Program program = planned.workload->build(planned.c);
  for (const OpCall& op : program.ops()) {
    if (op.kind.name != "attention_backward") continue;
    ASSERT_EQ(op.outputs.size(), 3U);
    EXPECT_EQ(program.value(op.outputs[0]).storage, program.value(op.outputs[1]).storage);
    EXPECT_EQ(program.value(op.outputs[1]).storage, program.value(op.outputs[2]).storage);
    return;
  }
  FAIL() << "no attention_backward in the program";
}

}  // namespace
}  // namespace gpubench
