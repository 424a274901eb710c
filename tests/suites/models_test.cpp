// The suites' models have the published numbers of parameters, and the work of a training step that follows.
#include <gtest/gtest.h>

#include "reference/ops/definition.h"
#include "tests/suites/workloads.h"

namespace gpubench {
namespace {

Program build(const std::string& suite_name, const std::string& workload_name, Dims dims,
              const std::string& precision = "f32", int ranks = 1) {
  return testing::program_of({suite_name, workload_name, std::move(dims), precision, {}, ranks, "of a test"});
}

/// Elements of all trained tensors; a master and its copy count once.
std::int64_t parameters_of(const Program& program) {
  std::int64_t count = 0;
  for (const Value& value : program.values()) {
    if (value.source && value.spec.role == Role::parameter) count += value.spec.shape.elements();
  }
  return count;
}

double flop_of(const Program& program, std::initializer_list<std::string_view> kinds) {
  double flop = 0.0;
  for (const OpCall& op : program.ops()) {
    for (const std::string_view kind : kinds) {
      if (!op.kind.name.starts_with(kind)) continue;
      flop += definition(op.kind).cost({op, specs_of(program, op.inputs), specs_of(program, op.outputs)}).flop;
    }
  }
  return flop;
}

Dims gpt2(std::int64_t layers, std::int64_t h, std::int64_t heads, std::int64_t vocabulary) {
  return {{"b", 1}, {"s", 1024}, {"layers", layers}, {"h", h}, {"heads", heads}, {"vocab", vocabulary}};
}

// With the published vocabulary; the cases pad it to a multiple of 128.
TEST(Models, Gpt2HasTheParametersOfItsFourPublishedSizes) {
  const auto count = [](std::int64_t layers, std::int64_t h, std::int64_t heads) {
    return parameters_of(build("transformer", "gpt2_train_step", gpt2(layers, h, heads, 50257), "bf16"));
  };

  EXPECT_EQ(count(12, 768, 12), 124'439'808);
  EXPECT_EQ(count(24, 1024, 16), 354'823'168);
  EXPECT_EQ(count(36, 1280, 20), 774'030'080);
  EXPECT_EQ(count(48, 1600, 25), 1'557'611'200);
}

// Six FLOP per weight and token; causal attention: 2 h (s + 1) per token and layer forward, 2.5 times that backward.
TEST(Models, AGpt2StepDoesTheWorkThatItsWeightsAndItsAttentionAskFor) {
  const double weights = 12 * 12 * 768.0 * 768 + 50304.0 * 768;
  const double attention = 12 * 7 * 768.0 * 1025;

  EXPECT_DOUBLE_EQ(flop_of(build("transformer", "gpt2_train_step", gpt2(12, 768, 12, 50304)), {"gemm", "attention"}),
                   1024 * (6 * weights + attention));
}

Dims llama(std::int64_t layers, std::int64_t h, std::int64_t heads, std::int64_t kv, std::int64_t f,
           std::int64_t vocabulary) {
  return {{"b", 1},         {"s", 2048}, {"layers", layers}, {"h", h},
          {"heads", heads}, {"kv", kv},  {"f", f},           {"vocab", vocabulary}};
}

TEST(Models, LlamaHasTheParametersOfItsPublishedSizes) {
  const auto count = [](const Dims& dims) {
    return parameters_of(build("transformer", "llama_train_step", dims, "bf16"));
  };

  EXPECT_EQ(count(llama(32, 4096, 32, 8, 14336, 128256)), 8'030'261'248);   // Llama 3 8B
  EXPECT_EQ(count(llama(80, 8192, 64, 8, 28672, 128256)), 70'553'706'496);  // Llama 3 70B
  EXPECT_EQ(count(llama(22, 2048, 32, 4, 5632, 32000)), 1'100'048'384);     // TinyLlama 1.1B
}

// An 8B block's four products: 436.2 MFLOP per token forward (2 h (6144 + 4096 + 28672 + 14336)), three times that per
// step; attention as for GPT-2, with 32 heads of 128.
TEST(Models, ALlamaBlockDoesTheWorkThatItsWeightsAndItsAttentionAskFor) {
  const Program program =
      build("transformer", "llama_block", {{"b", 1}, {"s", 2048}, {"h", 4096}, {"heads", 32}, {"kv", 8}, {"f", 14336}});

  EXPECT_DOUBLE_EQ(flop_of(program, {"gemm"}), 2048 * 3 * 2 * 4096.0 * (6144 + 4096 + 28672 + 14336));
  EXPECT_DOUBLE_EQ(flop_of(program, {"attention"}), 2048 * 7 * 4096.0 * 2049);
}

Dims resnet(std::int64_t depth, std::int64_t n = 1) {
  return {{"n", n}, {"image", 224}, {"width", 64}, {"depth", depth}, {"classes", 1000}};
}

TEST(Models, ResNetHasTheParametersOfItsPublishedDepths) {
  EXPECT_EQ(parameters_of(build("convnet", "resnet_train_step", resnet(50), "bf16")), 25'557'032);
  EXPECT_EQ(parameters_of(build("convnet", "resnet_train_step", resnet(101), "bf16")), 44'549'160);
  EXPECT_EQ(parameters_of(build("convnet", "resnet_train_step", resnet(152), "bf16")), 60'192'808);
}

// 4.089 G multiply-adds per image forward with stride on the 3x3 (paper: 3.86, stride on the 1x1). A step would be
// three times that, 24.5 GFLOP, without the image's gradient, which costs as much as the first convolution.
TEST(Models, ResNet50DoesItsPublishedWork) {
  const Program program = build("convnet", "resnet_train_step", resnet(50, 2));
  const double forward = flop_of(program, {"conv2d_forward"}) / 2 + 2.0 * 2048 * 1000;
  const double first = 2.0 * 112 * 112 * 64 * 7 * 7 * 3;

  EXPECT_NEAR(forward / 2e9, 4.089, 0.0005);
  EXPECT_NEAR(3 * forward / 1e9, 24.5, 0.05);
  EXPECT_DOUBLE_EQ(flop_of(program, {"conv2d", "gemm"}) / 2, 3 * forward - first);
}

TEST(Models, EveryRankOfAResNetKeepsRunningAveragesOfItsOwn) {
  const Program program = build("convnet", "resnet_train_step",
                                {{"n", 2}, {"image", 64}, {"width", 16}, {"depth", 14}, {"classes", 10}}, "f32", 2);
  int running = 0;
  for (const Value& value : program.values())
    running += value.spec.name.find("running_mean'") != std::string::npos ? 1 : 0;
  EXPECT_EQ(running, 2 * (1 + 4 * 4));
}

Dims bert(std::int64_t layers, std::int64_t h, std::int64_t heads, std::int64_t s = 512) {
  return {{"b", 2}, {"s", s}, {"layers", layers}, {"h", h}, {"heads", heads}, {"vocab", 30522}};
}

// BERT-base has 109,482,240 with a pooler, which has as many as the dense layer of the masked-token head. The head's
// norm and vocabulary bias are additional.
TEST(Models, BertHasTheParametersOfItsPublishedSizes) {
  const auto count = [](const Dims& dims) {
    return parameters_of(build("transformer", "bert_train_step", dims, "bf16"));
  };

  EXPECT_EQ(count(bert(12, 768, 12)), 109'482'240 + 2 * 768 + 30522);
  EXPECT_EQ(count(bert(24, 1024, 16)), 335'174'458);
}

// As GPT-2, but attention covers all s tokens, and the head reads one token in seven.
TEST(Models, ABertStepDoesTheWorkThatItsWeightsAndItsAttentionAskFor) {
  const double weights = 12 * 12 * 768.0 * 768, head = 768.0 * (768 + 30522);

  EXPECT_DOUBLE_EQ(flop_of(build("transformer", "bert_train_step", bert(12, 768, 12, 511)), {"gemm", "attention"}),
                   1022 * (6 * weights + 12 * 14 * 768.0 * 511) + 146 * 6 * head);
}

Dims vit(std::int64_t layers, std::int64_t h, std::int64_t heads) {
  return {{"n", 2}, {"image", 224}, {"patch", 16}, {"layers", layers}, {"h", h}, {"heads", heads}, {"classes", 1000}};
}

TEST(Models, VitHasTheParametersOfItsPublishedSizes) {
  const auto count = [](const Dims& dims) {
    return parameters_of(build("transformer", "vit_train_step", dims, "bf16"));
  };

  EXPECT_EQ(count(vit(12, 768, 12)), 86'567'656);    // ViT-B/16
  EXPECT_EQ(count(vit(24, 1024, 16)), 304'326'632);  // ViT-L/16
}

// 17.56 G multiply-adds per image forward (torchvision). A step is three times that, without the image's gradient, and
// with an attention backward of 2.5 instead of 2 times its forward.
TEST(Models, VitDoesItsPublishedWork) {
  const Program program = build("transformer", "vit_train_step", vit(12, 768, 12));
  const double patches = 2.0 * 196 * 768 * 768, attention = flop_of(program, {"attention_forward"}) / 2;
  const double forward = (flop_of(program, {"gemm"}) / 2 + patches) / 3 + attention;

  EXPECT_NEAR(forward / 2e9, 17.56, 0.005);
  EXPECT_DOUBLE_EQ(attention, 12 * 4 * 768.0 * 197 * 197);
}

// torchvision's vgg16_bn has 138 365 992, including 4224 biases of its 13 convolutions, which are absent here.
TEST(Models, VggHasTheParametersAndDoesTheWorkOfItsPublishedSize) {
  const Program program =
      build("convnet", "vgg_train_step", {{"n", 1}, {"image", 224}, {"width", 64}, {"classes", 1000}});
  const double convolutions = flop_of(program, {"conv2d_forward"}), linear = flop_of(program, {"gemm"}) / 3;

  EXPECT_EQ(parameters_of(program) + 4224, 138'365'992);
  EXPECT_NEAR((convolutions + linear) / 2e9, 15.47, 0.005);
}

Dims dit_xl_2() {
  return {{"n", 1},       {"image", 32}, {"channels", 4}, {"patch", 2},
          {"layers", 28}, {"h", 1152},   {"heads", 16},   {"classes", 1000}};
}

// 675 million with the 256 fixed positions, which DiT counts. Its 118.64 GFLOP are multiply-adds of the products (no
// input gradients of patches and time step), and of some ops between them.
TEST(Models, DitHasTheParametersAndDoesTheWorkOfItsPublishedSize) {
  const Program program = build("transformer", "dit_train_step", dit_xl_2());
  const double without_dx = 2.0 * 1152 * (256 * 16 + 256);
  const double attention = flop_of(program, {"attention_forward"});
  const double products = (flop_of(program, {"gemm"}) + without_dx) / 3;

  EXPECT_EQ(parameters_of(program) + 256 * 1152, 675'129'632);
  EXPECT_NEAR((products + attention) / 2e9, 118.64, 0.03);
}

TEST(Models, MixtralHasTheParametersOfItsPublishedSize) {
  Dims dims = llama(32, 4096, 32, 8, 14336, 32000);
  dims.emplace_back("experts", 8);
  dims.emplace_back("k", 2);

  EXPECT_EQ(parameters_of(build("moe", "mixtral_train_step", dims, "bf16")), 46'702'792'704);  // Mixtral 8x7B
}

// Two experts per token; the router has 8 outputs.
TEST(Models, AMixtralBlockDoesTheWorkOfTwoExpertsAToken) {
  const Program program =
      build("moe", "mixtral_block",
            {{"b", 1}, {"s", 2048}, {"h", 4096}, {"heads", 32}, {"kv", 8}, {"f", 14336}, {"experts", 8}, {"k", 2}});

  EXPECT_DOUBLE_EQ(flop_of(program, {"gemm"}), 2048 * 3 * 2 * 4096.0 * (6144 + 4096 + 8));
  EXPECT_DOUBLE_EQ(flop_of(program, {"grouped_gemm"}), 2048 * 2 * 3 * 2 * 4096.0 * (28672 + 14336));
  for (const OpCall& op : program.ops()) EXPECT_NE(op.kind.name, "reorder") << op.label;
}

Dims deepseek(std::int64_t s, std::int64_t experts) {
  return {{"b", 1},      {"s", s},     {"h", 7168}, {"heads", 128}, {"q_rank", 1536},     {"kv_rank", 512},
          {"nope", 128}, {"rope", 64}, {"v", 128},  {"f", 2048},    {"experts", experts}, {"k", 8}};
}

// DeepSeek-V3: 58 such blocks (the router's 256 biases are not parameters here), 3 with a feed-forward layer of width
// 18432 instead of experts, an embedding and a head of 129280 tokens, and a last norm.
TEST(Models, DeepSeekHasTheParametersOfItsPublishedSize) {
  const std::int64_t h = 7168, attention = 187'107'328, norms = 2 * h;
  const std::int64_t block = parameters_of(build("moe", "deepseek_block", deepseek(128, 256), "bf16"));

  EXPECT_EQ(58 * (block + 256) + 3 * (attention + norms + 3 * h * 18432) + 2 * 129280 * h + h, 671'026'419'200);
}

// Queries and keys of 192 elements, values of 128; causal, so half of all pairs. One copy per unrotated part, and one
// for its gradient.
TEST(Models, ADeepSeekBlockDoesTheWorkOfItsLatents) {
  const Program program = build("moe", "deepseek_block", deepseek(2048, 256));
  int copies = 0;
  for (const OpCall& op : program.ops()) copies += op.kind.name == "reorder" ? 1 : 0;

  EXPECT_DOUBLE_EQ(flop_of(program, {"attention_forward"}), 128 * 2.0 * (192 + 128) * 2048 * 2049 / 2);
  EXPECT_DOUBLE_EQ(flop_of(program, {"gemm"}),
                   2048 * 3 * 2.0 * (187'107'328 - 2048 + 7168 * 256 + 3 * 7168 * 2048));  // without the latents' norms
  EXPECT_EQ(copies, 5);
}

// Both halves of gate_up, and q, k and v: nothing is copied in between.
TEST(Models, TheGradientsOfPackedProductsAreWrittenInPlace) {
  const Program program =
      build("transformer", "llama_block", {{"b", 1}, {"s", 256}, {"h", 256}, {"heads", 4}, {"kv", 2}, {"f", 704}});
  for (const OpCall& op : program.ops()) EXPECT_NE(op.kind.name, "reorder") << op.label;
}

// Three micro-batches do three times the forward and backward. Blocks are repeated without their last product and sum,
// which no backward reads.
TEST(Models, MicroBatchesAndRecomputationMultiplyTheWorkOfTheirPart) {
  const Dims dims{{"b", 2}, {"s", 64}, {"layers", 2}, {"h", 128}, {"heads", 4}, {"vocab", 512}};
  Dims three = dims;
  three.emplace_back("micro", 3);
  const auto built = [](const Dims& d, std::vector<std::string> modes) {
    return testing::program_of({"transformer", "gpt2_train_step", d, "bf16", std::move(modes), 1, "of a test"});
  };
  const Program one = built(dims, {});
  const Program all = built(three, {});
  EXPECT_DOUBLE_EQ(flop_of(all, {"gemm", "attention", "layer_norm"}),
                   3 * flop_of(one, {"gemm", "attention", "layer_norm"}));
  EXPECT_DOUBLE_EQ(flop_of(all, {"adamw", "clip"}), flop_of(one, {"adamw", "clip"}));
  EXPECT_EQ(parameters_of(all), parameters_of(one));

  const Program again = built(dims, {"recompute"});
  const double rows = 2 * 64;
  const double products = 2 * 2 * rows * 128 * (384 + 128 + 512);  // of two layers: qkv, attention_out, up
  EXPECT_DOUBLE_EQ(flop_of(again, {"gemm"}) - flop_of(one, {"gemm"}), products);
  EXPECT_DOUBLE_EQ(flop_of(again, {"attention_forward"}), 2 * flop_of(one, {"attention_forward"}));
}

TEST(Models, ItemsAreThoseOfAllMicroBatches) {
  const auto gpt2 = testing::workload_named("transformer", "gpt2_train_step");
  Case c{"transformer", "gpt2_train_step", {{"b", 2}, {"s", 64}}, "f32", {}, 1, ""};
  EXPECT_EQ(gpt2->items(c), 128.0);
  c.dims.emplace_back("micro", 3);
  EXPECT_EQ(gpt2->items(c), 384.0);
}

}  // namespace
}  // namespace gpubench
