#include <gtest/gtest.h>

#include <array>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/gemm.h"
#include "reference/ops/pointwise.h"
#include "reference/ops/transform/fuse.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace fuse_cross_entropy_test {

constexpr std::array cross_entropy_claim{FusionClaim{cross_entropy_forward_backward_kind, true}};

// x w -> logits -> loss, lse; logits, lse -> dlogits. As in a training step.
struct Head {
  Program p;
  ValueId x, w, labels, logits;
  CrossEntropyForward loss;
  ValueId dlogits;

  Head() {
    x = source(p, "x", DType::f32, {4, 6});
    w = source(p, "w", DType::f32, {6, 5}, Role::parameter);
    labels = source(p, "labels", DType::i32, {4});
    logits = gemm(p, {}, f32_math, "logits", x, w).c;
    loss = cross_entropy_forward(p, f32_math, "loss", logits, labels);
  }
  void backward(bool in_place = false) {
    dlogits = cross_entropy_backward(p, f32_math, "loss.backward", logits, labels, loss.lse, in_place);
  }
  [[nodiscard]] Labels fused() const { return labels_of(fuse(p, cross_entropy_claim).program); }
};

TEST(FuseCrossEntropy, TheLossAndItsGradientBecomeOneOp) {
  for (const bool in_place : {false, true}) {
    Head head;
    head.backward(in_place);
    (void)gemm(head.p, {.transpose_a = true}, f32_math, "dw", head.x, head.dlogits);

    const Fused fused = fuse(head.p, cross_entropy_claim);

    EXPECT_EQ(labels_of(fused.program), (Labels{"logits", "loss+loss.backward", "dw"})) << in_place;
    EXPECT_EQ(fused.rewrites, (Labels{"loss+loss.backward = cross_entropy_forward_backward"}));
    const OpCall& op = fused.program.op(1);
    EXPECT_EQ(op.kind, cross_entropy_forward_backward_kind);
    EXPECT_EQ(op.inputs, (std::vector<ValueId>{head.logits, head.labels}));
    EXPECT_EQ(op.outputs, (std::vector<ValueId>{head.loss.loss, head.loss.lse, head.dlogits}));
    EXPECT_EQ(fused.program.value(head.dlogits).updates.has_value(), in_place);
    EXPECT_EQ(fused.program.dependencies(), (std::vector<std::vector<int>>{{}, {0}, {1}})) << in_place;
  }
}

TEST(FuseCrossEntropy, TheFusedProgramMeansTheSameUpToTheRoundingOfTheLse) {
  Head head;
  head.backward(true);
  const Fused fused = fuse(head.p, cross_entropy_claim);
  TextbookRun one(fused.program);
  TextbookRun two(head.p);
  for (TextbookRun* run : {&one, &two}) {
    run->set(head.x, spread(24, 1));
    run->set(head.w, spread(30, 2));
    run->set(head.labels, {3, 0, 4, 1});
    run->run();
  }
  EXPECT_EQ(one.get(head.loss.loss), two.get(head.loss.loss));
  EXPECT_EQ(one.get(head.loss.lse), two.get(head.loss.lse));
  expect_near(one.get(head.dlogits), two.get(head.dlogits), 0x1p-24);
}

TEST(FuseCrossEntropy, WhoReadsTheLossOrTheLogitsInBetweenIsNotInTheWayOfAGradientApart) {
  Head head;
  (void)scale(head.p, {2.0}, f32_math, "scaled loss", head.loss.loss);
  (void)column_sum(head.p, f32_math, "logit sums", head.logits);
  head.backward();

  EXPECT_EQ(head.fused(), (Labels{"logits", "loss+loss.backward", "scaled loss", "logit sums"}));
}

TEST(FuseCrossEntropy, AGradientInPlaceWaitsForWhoReadsTheLogitsInBetween) {
  Head head;
  (void)column_sum(head.p, f32_math, "logit sums", head.logits);
  head.backward(true);

  EXPECT_EQ(head.fused(), (Labels{"logits", "loss", "logit sums", "loss.backward"}));
}

TEST(FuseCrossEntropy, TermsAndTheGradientOfTheLossAreKeptAndOtherTermsStayApart) {
  for (const double z : {0.0, 1e-4}) {
    Head head;
    const CrossEntropy terms{.label_smoothing = 0.1};
    const ValueId dloss = source(head.p, "dloss", DType::f32, {1});
    head.loss = cross_entropy_forward(head.p, f32_math, "smoothed", head.logits, head.labels, terms);
    CrossEntropy others = terms;
    others.z_loss = z;
    (void)cross_entropy_backward(head.p, f32_math, "gradient", head.logits, head.labels, head.loss.lse, false, others,
                                 dloss);

    const Fused fused = fuse(head.p, cross_entropy_claim);

    if (z != 0.0) {
      EXPECT_EQ(labels_of(fused.program), (Labels{"logits", "loss", "smoothed", "gradient"}));
      continue;
    }
    EXPECT_EQ(labels_of(fused.program), (Labels{"logits", "loss", "smoothed+gradient"}));
    EXPECT_EQ(fused.program.op(2).inputs, (std::vector<ValueId>{head.logits, head.labels, dloss}));
    EXPECT_EQ(fused.program.op(2).attributes.to_string(), "label_smoothing=0.1, scaled");
  }
}

TEST(FuseCrossEntropy, AGradientOfOtherLabelsOrAnotherLseStays) {
  Head labels;
  const ValueId others = source(labels.p, "others", DType::i32, {4});
  (void)cross_entropy_backward(labels.p, f32_math, "backward", labels.logits, others, labels.loss.lse);
  EXPECT_EQ(labels.fused(), (Labels{"logits", "loss", "backward"}));

  Head lse;
  const ValueId doubled = scale(lse.p, {2.0}, f32_math, "doubled", lse.loss.lse);
  (void)cross_entropy_backward(lse.p, f32_math, "backward", lse.logits, lse.labels, doubled);
  EXPECT_EQ(lse.fused(), (Labels{"logits", "loss", "doubled", "backward"}));
}

TEST(FuseCrossEntropy, AGradientOfOtherArithmeticOrInAnotherPhaseStays) {
  Head math;
  (void)cross_entropy_backward(math.p, f64_math, "backward", math.logits, math.labels, math.loss.lse);
  EXPECT_EQ(math.fused(), (Labels{"logits", "loss", "backward"}));

  Head phase;
  phase.p.begin(Phase::setup);
  phase.backward();
  EXPECT_EQ(phase.fused(), (Labels{"logits", "loss", "loss.backward"}));
}

TEST(FuseCrossEntropy, LogitsThatAreAViewOfWiderOnesStay) {
  Program p;
  TensorSpec spec = tensor("whole", DType::f32, {4, 8}, Role::input);
  const ValueId whole = p.add(spec);
  spec.name = "logits";
  spec.shape = {4, 5};
  const ValueId logits = p.part(whole, spec, 2);
  const ValueId labels = source(p, "labels", DType::i32, {4});
  const CrossEntropyForward loss = cross_entropy_forward(p, f32_math, "loss", logits, labels);
  (void)cross_entropy_backward(p, f32_math, "backward", logits, labels, loss.lse);

  EXPECT_EQ(labels_of(fuse(p, cross_entropy_claim).program), (Labels{"loss", "backward"}));
}

TEST(FuseCrossEntropy, OfTwoGradientsTheFirstIsFused) {
  Head head;
  head.backward();
  (void)cross_entropy_backward(head.p, f32_math, "again", head.logits, head.labels, head.loss.lse);

  EXPECT_EQ(head.fused(), (Labels{"logits", "loss+loss.backward", "again"}));
}

}  // namespace fuse_cross_entropy_test
}  // namespace gpubench::testing
