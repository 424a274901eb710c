#include "reference/ops/transform/fuse.h"

#include <gtest/gtest.h>

#include <array>

#include "reference/ops/batch_norm.h"
#include "reference/ops/conv2d_batch_norm.h"
#include "reference/ops/gemm.h"
#include "reference/ops/move.h"
#include "reference/ops/norm.h"
#include "reference/ops/optimizer.h"
#include "reference/ops/pointwise.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace fuse_test {

constexpr std::array residual_norm_claim{FusionClaim{residual_norm_forward_kind, true}};

TEST(Fuse, WithoutClaimsTheProgramIsUnchanged) {
  Program p;
  scale(p, {2.0}, f32_math, "y", source(p, "x", DType::f32, {4}));

  const Fused fused = fuse(p, {});

  EXPECT_EQ(fused.program.to_string(), p.to_string());
  EXPECT_TRUE(fused.rewrites.empty());
}

TEST(Fuse, AClaimThatNoRewriteKnowsIsAnErrorNamingIt) {
  const std::array claims{FusionClaim{OpKind{"norm_gemm"}, true}};

  const std::string message = program_error([&] { (void)fuse(Program(), claims); });

  EXPECT_NE(message.find("'norm_gemm'"), std::string::npos) << message;
}

// x + r -> sum -> norm -> y; y w -> fed; sum + fed -> out. As in a transformer's block.
struct Block {
  Program p;
  ValueId x, r, gamma, beta, w, sum, out;
  LayerNormForward norm;

  explicit Block(DType type = DType::f32) {
    x = source(p, "x", type, {4, 6});
    r = source(p, "r", type, {4, 6});
    sum = add(p, f32_math, "residual1", x, r);
    gamma = source(p, "gamma", DType::f32, {6}, Role::parameter);
    beta = source(p, "beta", DType::f32, {6}, Role::parameter);
    norm = layer_norm_forward(p, {1e-6}, f32_math, "ln2", sum, gamma, beta);
    w = source(p, "w", type, {6, 6}, Role::parameter);
    const ValueId fed = gemm(p, {}, f32_math, "fed", norm.y, w).c;
    out = add(p, f32_math, "residual2", sum, fed);
  }
};

TEST(Fuse, AnAddAndTheNormOfItsSumBecomeOneOp) {
  const Block block;

  const Fused fused = fuse(block.p, residual_norm_claim);

  EXPECT_EQ(labels_of(fused.program), (Labels{"residual1+ln2", "fed", "residual2"}));
  EXPECT_EQ(fused.rewrites, (Labels{"residual1+ln2 = residual_norm_forward"}));
  const OpCall& op = fused.program.op(0);
  EXPECT_EQ(op.kind, residual_norm_forward_kind);
  EXPECT_EQ(op.attributes.as<ResidualNorm>().epsilon, 1e-6);
  EXPECT_EQ(op.inputs, (std::vector<ValueId>{block.x, block.r, block.gamma, block.beta}));
  EXPECT_EQ(op.outputs, (std::vector<ValueId>{block.sum, block.norm.y, block.norm.mean, block.norm.rstd}));
  EXPECT_EQ(fused.program.value(block.sum).producer, 0);
  EXPECT_EQ(fused.program.dependencies(), (std::vector<std::vector<int>>{{}, {0}, {0, 1}}));
}

constexpr std::array batch_norm_claim{FusionClaim{batch_norm_relu_forward_kind, true}};

BatchNormForward normalized(Program& p, const std::string& label, ValueId x) {
  const auto of_channels = [&](const char* name) { return source(p, label + name, DType::f32, {6}); };
  return batch_norm_forward(p, {.epsilon = 0.5}, f32_math, label, x,
                            {of_channels(".gamma"), of_channels(".beta"), of_channels(".mean0"), of_channels(".var0")});
}

TEST(Fuse, ABatchNormAndItsReluBecomeOneOp) {
  Program p;
  const BatchNormForward norm = normalized(p, "norm", source(p, "x", DType::f32, {4, 6}));
  const ValueId y = relu_forward(p, f32_math, "relu", norm.y);

  const Fused fused = fuse(p, batch_norm_claim);

  EXPECT_EQ(fused.rewrites, (Labels{"norm+relu = batch_norm_relu_forward"}));
  const OpCall& op = fused.program.op(0);
  EXPECT_EQ(op.attributes.as<BatchNormRelu>().norm.epsilon, 0.5);
  EXPECT_EQ(op.inputs, p.op(0).inputs);
  EXPECT_EQ(fused.program.spec(op.outputs[0]).name, p.spec(y).name);
  EXPECT_EQ(fused.program.values().size(), p.values().size() - 1);  // the normalized x is not stored
}

// The sum needs both norms, so it can join only the later one.
TEST(Fuse, ASumOfTwoBatchNormsGoesWithTheLater) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {4, 6});
  const BatchNormForward first = normalized(p, "first", x), second = normalized(p, "second", x);
  relu_forward(p, f32_math, "relu", add(p, f32_math, "sum", first.y, second.y));

  const Fused fused = fuse(p, batch_norm_claim);

  EXPECT_EQ(labels_of(fused.program), (Labels{"first", "second+sum+relu"}));
  EXPECT_EQ(fused.program.op(1).inputs.back(), fused.program.op(0).outputs[0]);
}

TEST(Fuse, ABatchNormStaysWhereAnotherOpReadsWhatItNormalized) {
  Program p;
  const BatchNormForward norm = normalized(p, "norm", source(p, "x", DType::f32, {4, 6}));
  relu_forward(p, f32_math, "relu", norm.y);
  scale(p, {2.0}, f32_math, "read", norm.y);

  EXPECT_TRUE(fuse(p, batch_norm_claim).rewrites.empty());
}

TEST(Fuse, ASumOfABatchNormWithItselfStays) {
  Program p;
  const BatchNormForward norm = normalized(p, "norm", source(p, "x", DType::f32, {4, 6}));
  relu_forward(p, f32_math, "relu", add(p, f32_math, "sum", norm.y, norm.y));

  EXPECT_TRUE(fuse(p, batch_norm_claim).rewrites.empty());
}

constexpr std::array convolution_claims{FusionClaim{conv2d_batch_norm_forward_kind, true},
                                        FusionClaim{batch_norm_relu_forward_kind, true}};

/// A batch norm of the product of x [2, 3, 3, 6] and a new filter.
BatchNormForward convolved(Program& p, const std::string& label, ValueId x, const Conv2d& conv = {}) {
  const ValueId filter = source(p, label + ".filter", DType::f32, {6, 1, 1, 6});
  return normalized(p, label + ".norm", conv2d_forward(p, conv, f32_math, label, x, filter));
}

TEST(Fuse, AConvolutionAndItsBatchNormBecomeOneOpWithTheProductStored) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 3, 3, 6});
  const BatchNormForward norm = convolved(p, "conv", x, {.stride_h = 2});
  scale(p, {2.0}, f32_math, "read", p.op(0).outputs[0]);

  const Fused fused = fuse(p, convolution_claims);

  EXPECT_EQ(fused.rewrites, (Labels{"conv+conv.norm = conv2d_batch_norm_forward"}));
  const OpCall& op = fused.program.op(0);
  const auto& attributes = op.attributes.as<Conv2dBatchNorm>();
  EXPECT_EQ(attributes.conv.stride_h, 2);
  EXPECT_EQ(attributes.norm.epsilon, 0.5);
  EXPECT_FALSE(attributes.relu || attributes.r);
  EXPECT_EQ(fused.program.spec(op.outputs[0]).name, p.spec(p.op(0).outputs[0]).name);
  EXPECT_EQ(fused.program.spec(op.outputs[1]).name, p.spec(norm.y).name);
  EXPECT_EQ(fused.program.op(1).inputs[0], op.outputs[0]);
  EXPECT_EQ(fused.program.values().size(), p.values().size());
}

TEST(Fuse, ABatchNormWithItsReluGoesWithTheConvolutionBeforeIt) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 3, 3, 6});
  const ValueId y = relu_forward(p, f32_math, "relu", add(p, f32_math, "sum", convolved(p, "conv", x).y, x));

  const Fused fused = fuse(p, convolution_claims);

  EXPECT_EQ(fused.rewrites, (Labels{"conv+conv.norm+sum+relu = conv2d_batch_norm_forward"}));
  const OpCall& op = fused.program.op(0);
  EXPECT_TRUE(op.attributes.as<Conv2dBatchNorm>().relu && op.attributes.as<Conv2dBatchNorm>().r);
  EXPECT_EQ(op.inputs.back(), x);
  EXPECT_EQ(fused.program.spec(op.outputs[1]).name, p.spec(y).name);
  EXPECT_EQ(fused.program.values().size(), p.values().size() - 2);  // the normalized x, and its sum
}

// A bottleneck with a norm in the shortcut: the sum joins the later norm.
TEST(Fuse, OfTwoConvolutionsWhoseNormsAreAddedTheLaterTakesTheSum) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 3, 3, 6});
  const ValueId main = convolved(p, "main", x).y, shortcut = convolved(p, "shortcut", x).y;
  relu_forward(p, f32_math, "relu", add(p, f32_math, "sum", main, shortcut));

  EXPECT_EQ(labels_of(fuse(p, convolution_claims).program),
            (Labels{"main+main.norm", "shortcut+shortcut.norm+sum+relu"}));
}

// The residual is made after the convolution, and before its norm.
TEST(Fuse, ANormThatCannotGoWithTheConvolutionStillGoesWithItsRelu) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {2, 3, 3, 6}), filter = source(p, "filter", DType::f32, {6, 1, 1, 6});
  const ValueId product = conv2d_forward(p, {}, f32_math, "conv", x, filter);
  const ValueId r = scale(p, {2.0}, f32_math, "residual", x);
  relu_forward(p, f32_math, "relu", add(p, f32_math, "sum", normalized(p, "norm", product).y, r));

  EXPECT_EQ(labels_of(fuse(p, convolution_claims).program), (Labels{"conv", "residual", "norm+sum+relu"}));
}

constexpr std::array batch_norm_backward_claim{FusionClaim{batch_norm_relu_backward_kind, true}};

/// The backward of y = relu(norm(x)), or of relu(norm(x) + r), of dy; and tensors that tests read.
struct ReluBackward {
  Program p;
  ValueId dy, dr;
  BatchNormBackward norm;

  explicit ReluBackward(bool sum = false) {
    const auto data = [this](const char* name) { return source(p, name, DType::f32, {4, 6}); };
    const ValueId x = data("x"), y = data("y"), row = source(p, "row", DType::f32, {6});
    dy = sum ? add(p, f32_math, "sum", data("a"), data("b")) : data("dy");
    dr = relu_backward(p, f32_math, "relu", y, dy);
    norm = batch_norm_backward(p, f32_math, "norm", dr, x, row, row, row);
  }
};

TEST(Fuse, ARelusGradientGoesWithTheBatchNormsAndIsNotStored) {
  const ReluBackward of;

  const Fused fused = fuse(of.p, batch_norm_backward_claim);

  EXPECT_EQ(fused.rewrites, (Labels{"relu+norm = batch_norm_relu_backward"}));
  const OpCall& op = fused.program.op(0);
  EXPECT_EQ(op.input("dy"), of.dy);
  EXPECT_EQ(fused.program.spec(op.input("y")).name, "y");
  EXPECT_EQ(fused.program.spec(op.output("dx")).name, of.p.spec(of.norm.dx).name);
  EXPECT_EQ(fused.program.values().size(), of.p.values().size() - 1);
}

TEST(Fuse, ARelusGradientThatTheResidualReadsStays) {
  ReluBackward of;
  scale(of.p, {2.0}, f32_math, "residual", of.dr);

  const Fused fused = fuse(of.p, batch_norm_backward_claim);

  EXPECT_EQ(labels_of(fused.program), (Labels{"relu+norm", "residual"}));
  EXPECT_EQ(fused.program.op(0).output("dr"), fused.program.op(1).inputs[0]);
  EXPECT_EQ(fused.program.values().size(), of.p.values().size());
}

TEST(Fuse, TheSumOfTwoGradientsGoesAlongAndIsNotStored) {
  const ReluBackward of(true);

  const Fused fused = fuse(of.p, batch_norm_backward_claim);

  EXPECT_EQ(labels_of(fused.program), (Labels{"sum+relu+norm"}));
  const OpCall& op = fused.program.op(0);
  EXPECT_EQ(fused.program.spec(op.input("dy")).name, "a");
  EXPECT_EQ(fused.program.spec(op.input("dy2")).name, "b");
  EXPECT_EQ(fused.program.spec(op.output("dr")).name, of.p.spec(of.dr).name);
}

TEST(Fuse, ASumOfGradientsThatAnotherOpReadsStaysAnAdd) {
  ReluBackward of(true);
  scale(of.p, {2.0}, f32_math, "read", of.dy);

  EXPECT_EQ(labels_of(fuse(of.p, batch_norm_backward_claim).program), (Labels{"sum", "relu+norm", "read"}));
}

// The shortcut's norm is the first reader, and the other one reads the stored gradient.
TEST(Fuse, OfTwoBatchNormsThatReadARelusGradientTheFirstTakesIt) {
  ReluBackward of;
  const ValueId x = source(of.p, "x2", DType::f32, {4, 6}), row = source(of.p, "row2", DType::f32, {6});
  (void)batch_norm_backward(of.p, f32_math, "second", of.dr, x, row, row, row);

  EXPECT_EQ(labels_of(fuse(of.p, batch_norm_backward_claim).program), (Labels{"relu+norm", "second"}));
}

TEST(Fuse, ARelusGradientStaysWhereTheBatchNormWaitsForAnOpInBetween) {
  Program p;
  const auto data = [&p](const char* name) { return source(p, name, DType::f32, {4, 6}); };
  const ValueId row = source(p, "row", DType::f32, {6});
  const ValueId dr = relu_backward(p, f32_math, "relu", data("y"), data("dy"));
  const ValueId later = scale(p, {2.0}, f32_math, "later", data("x"));
  (void)batch_norm_backward(p, f32_math, "norm", dr, later, row, row, row);

  EXPECT_TRUE(fuse(p, batch_norm_backward_claim).rewrites.empty());
}

TEST(Fuse, SaysWhichRewritesHaveNoMeasuredGain) {
  const std::array claims{FusionClaim{residual_norm_forward_kind, false}};

  EXPECT_EQ(fuse(Block().p, claims).rewrites,
            (Labels{"residual1+ln2 = residual_norm_forward (gain not yet measured)"}));
}

TEST(Fuse, TensorsAndStoragesStayAsTheyWere) {
  const Block block;

  const Fused fused = fuse(block.p, residual_norm_claim);

  ASSERT_EQ(fused.program.values().size(), block.p.values().size());
  for (std::size_t i = 0; i < block.p.values().size(); ++i) {
    const Value& was = block.p.values()[i];
    const Value& is = fused.program.values()[i];
    EXPECT_EQ(is.spec.to_string(), was.spec.to_string());
    EXPECT_EQ(is.storage, was.storage);
    EXPECT_EQ(is.source, was.source);
  }
  EXPECT_EQ(fused.program.bytes(), block.p.bytes());
}

TEST(Fuse, TheFusedProgramMeansTheSame) {
  for (const DType type : {DType::f32, DType::bf16}) {
    const Block block(type);
    const Fused fused = fuse(block.p, residual_norm_claim);
    TextbookRun one(fused.program);
    TextbookRun two(block.p);
    for (TextbookRun* run : {&one, &two}) {
      run->set(block.x, spread(24, 1));
      run->set(block.r, spread(24, 2));
      run->set(block.gamma, spread(6, 3));
      run->set(block.beta, spread(6, 4));
      run->set(block.w, spread(36, 5));
      run->run();
    }
    EXPECT_EQ(one.get(block.out), two.get(block.out)) << name(type);
    EXPECT_EQ(one.get(block.sum), two.get(block.sum)) << name(type);
    EXPECT_EQ(one.get(block.norm.rstd), two.get(block.norm.rstd)) << name(type);
  }
}

TEST(Fuse, OfTwoNormsOfOneSumTheFirstIsFused) {
  Block block;
  (void)layer_norm_forward(block.p, {}, f32_math, "again", block.sum, block.gamma, block.beta);

  EXPECT_EQ(labels_of(fuse(block.p, residual_norm_claim).program),
            (Labels{"residual1+ln2", "fed", "residual2", "again"}));
}

TEST(Fuse, ANormThatIsAppendedLaterComesForward) {
  Block block;
  (void)layer_norm_forward(block.p, {}, f32_math, "ln3", block.out, block.gamma, block.beta);
  Program& p = block.p;
  const ValueId late = add(p, f32_math, "late", block.x, block.out);
  (void)scale(p, {2.0}, f32_math, "between", block.x);
  (void)layer_norm_forward(p, {}, f32_math, "ln4", late, block.gamma, block.beta);

  EXPECT_EQ(labels_of(fuse(p, residual_norm_claim).program),
            (Labels{"residual1+ln2", "fed", "residual2+ln3", "late+ln4", "between"}));
}

TEST(Fuse, ANormThatWaitsForAnOpInBetweenStays) {
  Program p;
  const ValueId sum = add(p, f32_math, "sum", source(p, "x", DType::f32, {2, 3}), source(p, "r", DType::f32, {2, 3}));
  const ValueId gamma = scale(p, {2.0}, f32_math, "gamma.scaled", source(p, "gamma", DType::f32, {3}));
  (void)layer_norm_forward(p, {}, f32_math, "ln", sum, gamma, gamma);

  const Fused fused = fuse(p, residual_norm_claim);

  EXPECT_EQ(fused.program.to_string(), p.to_string());
  EXPECT_TRUE(fused.rewrites.empty());
}

TEST(Fuse, ASumThatIsUpdatedBeforeItsNormStays) {
  Program p;
  const ValueId a = source(p, "a", DType::f32, {3, 3});
  const ValueId sum = add(p, f32_math, "sum", a, source(p, "r", DType::f32, {3, 3}));
  const ValueId next = gemm(p, {.beta = 1.0}, f32_math, "update", a, a, {.c_in = sum}).c;
  const ValueId row = source(p, "row", DType::f32, {3});
  (void)layer_norm_forward(p, {}, f32_math, "ln", next, row, row);

  EXPECT_EQ(labels_of(fuse(p, residual_norm_claim).program), (Labels{"sum", "update", "ln"}));
}

TEST(Fuse, OpsOfDifferentArithmeticStay) {
  Program p;
  const ValueId sum = add(p, f32_math, "sum", source(p, "x", DType::f32, {2, 3}), source(p, "r", DType::f32, {2, 3}));
  const ValueId row = source(p, "row", DType::f32, {3});
  (void)layer_norm_forward(p, {}, f64_math, "ln", sum, row, row);

  EXPECT_EQ(labels_of(fuse(p, residual_norm_claim).program), (Labels{"sum", "ln"}));
}

struct ClippedStep {
  Program p;
  std::array<ValueId, 2> gradients;
  std::vector<ValueId> clipped;

  ClippedStep() {
    const auto of = [&](const std::string& name) { return source(p, name, DType::f32, {3}); };
    gradients = {of("g1"), of("g2")};
    const ValueId norm = gradient_norm(p, f32_math, "norm", gradients);
    clipped = clip(p, {2.0}, f32_math, "clip", norm, gradients);
  }
  void step(const std::vector<ValueId>& of, const std::string& label = "adamw") {
    std::vector<AdamWTensor> tensors;
    for (const ValueId gradient : of) {
      const auto state = [&](const char* name) {
        return source(p, label + "." + name + std::to_string(tensors.size()), DType::f32, {3});
      };
      tensors.push_back({state("w"), gradient, state("m"), state("v"), std::nullopt});
    }
    adamw(p, {.beta1 = 0.8}, f32_math, label, source(p, label + ".lr", DType::f32, {1}),
          source(p, label + ".step", DType::i32, {1}), tensors);
  }
};

constexpr std::array clip_adamw_claim{FusionClaim{clip_adamw_kind, true}};

TEST(Fuse, AClippedStepReadsTheGradientsAsTheyWere) {
  ClippedStep s;
  s.step({s.clipped[1], s.clipped[0]});

  const Fused fused = fuse(s.p, clip_adamw_claim);

  EXPECT_EQ(fused.rewrites, (Labels{"clip+adamw = clip_adamw"}));
  const OpCall& op = fused.program.op(1);
  EXPECT_EQ(op.attributes.as<ClipAdamW>(), (ClipAdamW{{.beta1 = 0.8}, 2.0}));
  const auto name_of = [&](std::size_t input) { return fused.program.spec(op.inputs[input]).name; };
  EXPECT_EQ(name_of(0), "norm");
  EXPECT_EQ(name_of(4), "g2");
  EXPECT_EQ(name_of(8), "g1");
  EXPECT_EQ(op.outputs.size(), 6U);
}

TEST(Fuse, AClipBeforeTwoStepsGoesWithBoth) {
  ClippedStep s;
  s.step({s.clipped[0]}, "first");
  s.step({s.clipped[1]}, "second");

  const Fused fused = fuse(s.p, clip_adamw_claim);

  EXPECT_EQ(fused.rewrites, (Labels{"clip+first = clip_adamw", "clip+second = clip_adamw"}));
  EXPECT_EQ(labels_of(fused.program), (Labels{"norm", "clip+first", "clip+second"}));
  EXPECT_EQ(fused.program.spec(fused.program.op(2).inputs[4]).name, "g2");
}

TEST(Fuse, AClipWhoseGradientsAreReadElsewhereOrNotAllByOneStepStays) {
  ClippedStep another_reader;
  another_reader.step(another_reader.clipped);
  (void)scale(another_reader.p, {2.0}, f32_math, "reader", another_reader.clipped[0]);
  EXPECT_TRUE(fuse(another_reader.p, clip_adamw_claim).rewrites.empty());

  ClippedStep one_left;
  one_left.step({one_left.clipped[0]});
  EXPECT_TRUE(fuse(one_left.p, clip_adamw_claim).rewrites.empty());

  ClippedStep one_unclipped;
  one_unclipped.step(
      {one_unclipped.clipped[0], one_unclipped.clipped[1], source(one_unclipped.p, "g3", DType::f32, {3})});
  EXPECT_TRUE(fuse(one_unclipped.p, clip_adamw_claim).rewrites.empty());
}

TEST(Fuse, PartsUpdatesAndSetUpOpsComeThrough) {
  Block block;
  Program& p = block.p;
  const ValueId half = p.part(block.x, tensor("half", DType::f32, {2, 6}, Role::input), 12);
  (void)scale(p, {2.0}, f32_math, "of half", half);
  p.begin(Phase::setup);
  const ValueId packed = copy(p, "packed", block.w);
  p.begin(Phase::timed);
  (void)gemm(p, {.beta = 1.0}, f32_math, "update", block.norm.y, packed, {.c_in = block.out});

  const Program fused = fuse(p, residual_norm_claim).program;

  EXPECT_EQ(labels_of(fused), (Labels{"residual1+ln2", "fed", "residual2", "of half", "packed", "update"}));
  EXPECT_EQ(fused.op(4).phase, Phase::setup);
  EXPECT_EQ(fused.op(5).phase, Phase::timed);
  EXPECT_EQ(fused.value(half).part_of, block.x);
  EXPECT_EQ(fused.value(half).offset_bytes, 48);
  EXPECT_EQ(fused.value(fused.op(5).outputs[0]).updates, block.out);
}

}  // namespace fuse_test
}  // namespace gpubench::testing
