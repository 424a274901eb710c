#include "reference/ops/cross_entropy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace cross_entropy_test {

constexpr double ln2 = std::numbers::ln2;

struct Loss {
  Program program;
  ValueId logits, labels;
  CrossEntropyForward forward;
  Loss(DType dtype, const Math& math, std::int64_t rows, std::int64_t classes)
      : logits(source(program, "logits", dtype, {rows, classes})),
        labels(source(program, "labels", DType::i32, {rows})),
        forward(cross_entropy_forward(program, math, "loss", logits, labels)) {}
};

// Row 0: logits 0 and ln 3, so p = 1/4, 3/4 and lse = ln 4. Row 1: equal logits, p = 1/2, lse = ln 2.
TEST(CrossEntropy, HasItsHandWorkedValues) {
  Loss loss(DType::f64, f64_math, 2, 2);
  const ValueId dlogits =
      cross_entropy_backward(loss.program, f64_math, "backward", loss.logits, loss.labels, loss.forward.lse);
  TextbookRun run(loss.program);
  run.set(loss.logits, {0, std::log(3.0), 0, 0});
  run.set(loss.labels, {0, 1});
  run.run();

  expect_near(run.get(loss.forward.lse), {2 * ln2, ln2}, 1e-15);
  expect_near(run.get(loss.forward.loss), {1.5 * ln2}, 1e-15);
  expect_near(run.get(dlogits), {-0.375, 0.375, 0.25, -0.25}, 1e-15);
}

TEST(CrossEntropy, LargeLogitsDoNotOverflow) {
  Loss loss(DType::f64, f64_math, 1, 2);
  TextbookRun run(loss.program);
  run.set(loss.logits, {5000, 5000});
  run.set(loss.labels, {1});
  run.run();

  expect_near(run.get(loss.forward.loss), {ln2}, 1e-12);
}

TEST(CrossEntropy, DerivativeAgreesWithDifferences) {
  constexpr std::int64_t rows = 3, classes = 5;
  Loss loss(DType::f64, f64_math, rows, classes);
  SingleOpTape tape(loss.program);
  tape.loss = loss.forward.loss;
  tape.wanted_inputs = {loss.logits};
  const OpCall forward = loss.program.op(0);
  definition(cross_entropy_forward_kind).derivative(loss.program, forward, tape);
  ASSERT_EQ(tape.contributions.count(loss.logits), 1U);
  const std::vector<double> labels{4, 0, 2};
  TextbookRun run(loss.program);
  run.set(loss.logits, spread(rows * classes, 1));
  run.set(loss.labels, labels);
  run.run();
  const std::vector<double> gradient = run.get(tape.contributions.find(loss.logits)->second);

  const auto loss_at = [&](std::size_t element, double step) {
    std::vector<double> logits = spread(rows * classes, 1);
    logits[element] += step;
    TextbookRun moved(loss.program);
    moved.set(loss.logits, logits);
    moved.set(loss.labels, labels);
    moved.run(0);
    return moved.get(loss.forward.loss)[0];
  };
  for (std::size_t i = 0; i < gradient.size(); ++i)
    EXPECT_NEAR(gradient[i], (loss_at(i, 1e-5) - loss_at(i, -1e-5)) / 2e-5, 1e-9) << i;
}

// The loss's gradient scales dlogits; none may flow into lse, which only the backward reads.
TEST(CrossEntropy, AGradientOfTheLossIsAnOperandOfItsBackwardAndOneOfItsStatisticIsRefused) {
  Loss loss(DType::f64, f64_math, 2, 2);
  SingleOpTape tape(loss.program);
  const ValueId dloss = source(loss.program, "dloss", DType::f64, {1});
  tape.given[loss.forward.loss] = dloss;
  tape.wanted_inputs = {loss.logits};
  const OpCall forward = loss.program.op(0);
  const OpDefinition& op = definition(cross_entropy_forward_kind);
  op.derivative(loss.program, forward, tape);
  TextbookRun run(loss.program);
  run.set(loss.logits, {0, std::log(3.0), 0, 0});
  run.set(loss.labels, {0, 1});
  run.set(dloss, {1024});
  run.run();

  expect_near(run.get(tape.contributions.find(loss.logits)->second), {-384, 384, 256, -256}, 1e-12);
  tape.given[loss.forward.lse] = source(loss.program, "dlse", DType::f64, {2});
  EXPECT_EQ(
      program_error([&] { op.derivative(loss.program, forward, tape); }),
      "cross_entropy_forward: op 'loss' has a gradient flowing into its outputs; expected one into its loss only");
}

TEST(CrossEntropy, BoundsAcceptF32AndRejectAMissingClass) {
  constexpr std::size_t rows = 40, classes = 1000;
  Loss loss(DType::f32, f32_math, rows, classes);
  const ValueId dlogits =
      cross_entropy_backward(loss.program, f32_math, "backward", loss.logits, loss.labels, loss.forward.lse);
  TextbookRun run(loss.program);
  std::vector<double> logits = spread(rows * classes, 1);
  for (double& x : logits) x *= 4.0;
  run.set(loss.logits, logits);
  std::vector<double> labels(rows);
  for (std::size_t row = 0; row < rows; ++row) labels[row] = static_cast<double>(row * 17);
  run.set(loss.labels, labels);
  run.run(0);
  const std::vector<double> x = run.get(loss.logits);
  const std::vector<double> stored_lse = run.get(loss.forward.lse);
  const std::vector<Expected> lse = run.judge(0, 1);
  const std::vector<Expected> gradient = run.judge(1, 0);
  (void)dlogits;

  float total = 0.0F;
  int wrong_accepted = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    float largest = -1e30F;
    for (std::size_t c = 0; c < classes; ++c) largest = std::max(largest, static_cast<float>(x[row * classes + c]));
    float sum = 0.0F;
    float without_last = 0.0F;
    for (std::size_t c = 0; c < classes; ++c) {
      without_last = sum;
      sum += std::exp(static_cast<float>(x[row * classes + c]) - largest);
    }
    const float computed = largest + std::log(sum);
    EXPECT_TRUE(within(lse[row], DType::f32, computed)) << row;
    wrong_accepted += within(lse[row], DType::f32, largest + std::log(without_last)) ? 1 : 0;
    total += computed - static_cast<float>(x[row * classes + row * 17]);
    for (std::size_t c = 0; c < classes; ++c) {
      const float p = std::exp(static_cast<float>(x[row * classes + c]) - static_cast<float>(stored_lse[row]));
      const float d = (p - (c == row * 17 ? 1.0F : 0.0F)) * (1.0F / rows);
      EXPECT_TRUE(within(gradient[row * classes + c], DType::f32, d)) << row << " " << c;
    }
  }
  EXPECT_TRUE(within(run.judge(0, 0)[0], DType::f32, total / rows));
  EXPECT_FALSE(within(run.judge(0, 0)[0], DType::f32, total / (rows - 1)));
  EXPECT_LT(wrong_accepted, static_cast<int>(rows) / 4);
}

TEST(CrossEntropy, ALabelOutsideTheClassesHasNoRightAnswer) {
  Loss loss(DType::f32, f32_math, 1, 2);
  TextbookRun run(loss.program);
  run.set(loss.logits, {0, 0});
  run.set(loss.labels, {2});

  EXPECT_TRUE(std::isnan(run.judge(0, 0)[0].value));
  EXPECT_FALSE(std::isnan(run.judge(0, 1)[0].value));  // independent of labels
}

// Two ranks with half of the classes each, in fp64, with every term.
TEST(CrossEntropy, WhatPartsOfTheClassesTellMakesTheLossOfAllAndTheirGradientsAreItsParts) {
  constexpr std::int64_t rows = 5, each = 3;
  const CrossEntropy terms{.ignores = true, .label_smoothing = 0.2, .z_loss = 0.01};
  Program p;
  const ValueId labels = source(p, "labels", DType::i32, {rows}), logits = source(p, "logits", DType::f64, {rows, 6});
  const CrossEntropyForward whole = cross_entropy_forward(p, f64_math, "whole", logits, labels, terms);
  const ValueId dwhole = cross_entropy_backward(p, f64_math, "dwhole", logits, labels, whole.lse, false, terms);
  std::vector<ValueId> of_part, lses, scores, gradients;
  const ValueId all_lses = source(p, "lses", DType::f64, {2, rows}),
                all_scores = source(p, "scores", DType::f64, {2, rows});
  for (int part = 0; part < 2; ++part) {
    CrossEntropy own = terms;
    own.first = part * each;
    own.classes = 2 * each;
    const std::string name = "part" + std::to_string(part);
    of_part.push_back(source(p, name + ".logits", DType::f64, {rows, each}));
    const CrossEntropyPartial told = cross_entropy_partial(p, f64_math, name, of_part.back(), labels, own);
    lses.push_back(told.lse);
    scores.push_back(told.score);
    gradients.push_back(
        cross_entropy_backward(p, f64_math, name + ".d", of_part.back(), labels, whole.lse, false, own));
  }
  const CrossEntropyForward joined = cross_entropy_combine(p, f64_math, "joined", all_lses, all_scores, labels, terms);
  TextbookRun run(p);
  const std::vector<double> x = spread(rows * 6, 1);
  run.set(logits, x);
  run.set(labels, {4, 0, -100, 2, 5});
  for (std::size_t part = 0; part < 2; ++part) {
    std::vector<double> own;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (i % 6 / 3 == part) own.push_back(x[i]);
    }
    run.set(of_part[part], own);
  }
  run.run();
  const auto both = [&](const std::vector<ValueId>& parts) {
    std::vector<double> all = run.get(parts[0]);
    const std::vector<double> second = run.get(parts[1]);
    all.insert(all.end(), second.begin(), second.end());
    return all;
  };
  run.set(all_lses, both(lses));
  run.set(all_scores, both(scores));
  run.run();

  expect_near(run.get(joined.lse), run.get(whole.lse), 1e-14);
  expect_near(run.get(joined.loss), run.get(whole.loss), 1e-14);
  const std::vector<double> all = run.get(dwhole);
  for (std::size_t part = 0; part < 2; ++part) {
    const std::vector<double> own = run.get(gradients[part]);
    for (std::size_t i = 0; i < own.size(); ++i) EXPECT_NEAR(own[i], all[i / 3 * 6 + part * 3 + i % 3], 1e-15) << i;
  }
}

TEST(CrossEntropy, ALabelOfNoPartHasNoScoreAndPartsThatAreNoneAreRefused) {
  Program p;
  const ValueId labels = source(p, "labels", DType::i32, {2}), logits = source(p, "logits", DType::f32, {2, 3});
  (void)cross_entropy_partial(p, f32_math, "part", logits, labels, {.first = 3, .classes = 6});
  TextbookRun run(p);
  run.set(logits, {1, 2, 3, 4, 5, 6});
  run.set(labels, {6, 2});

  EXPECT_TRUE(std::isnan(run.judge(0, 1)[0].value));
  EXPECT_EQ(run.judge(0, 1)[1].value, 0.0);
  EXPECT_EQ(program_error(
                [&] { (void)cross_entropy_partial(p, f32_math, "part", logits, labels, {.first = 4, .classes = 6}); }),
            "cross_entropy_partial: classes 4 to 6 are not among 6");
  EXPECT_EQ(program_error([&] { (void)cross_entropy_forward(p, f32_math, "loss", logits, labels, {.classes = 6}); }),
            "cross_entropy_forward: needs all classes; expected no 'first' and no 'classes'");
}

TEST(CrossEntropy, InPlaceGradientsUpdateTheLogits) {
  Loss loss(DType::bf16, f32_math, 2, 3);
  const ValueId dlogits =
      cross_entropy_backward(loss.program, f32_math, "backward", loss.logits, loss.labels, loss.forward.lse, true);

  EXPECT_EQ(loss.program.value(dlogits).updates, loss.logits);
  EXPECT_EQ(loss.program.spec(dlogits).dtype, DType::bf16);
  EXPECT_EQ(loss.program.spec(loss.forward.lse).dtype, DType::f32);
}

TEST(CrossEntropy, SubsetsOfUnitsAgreeWithAll) {
  Loss loss(DType::bf16, f32_math, 23, 29);
  (void)cross_entropy_backward(loss.program, f32_math, "backward", loss.logits, loss.labels, loss.forward.lse);
  TextbookRun run(loss.program);
  run.set(loss.logits, spread(23 * 29, 1));
  run.set(loss.labels, std::vector<double>(23, 7.0));
  run.run(0);

  expect_subsets_agree(run, 0, 1);
  expect_subsets_agree(run, 1, 0);
}

TEST(CrossEntropy, ReadsAndWritesTheLogitsOnce) {
  Loss loss(DType::bf16, f32_math, 4, 100);
  (void)cross_entropy_backward(loss.program, f32_math, "backward", loss.logits, loss.labels, loss.forward.lse);

  // logits 800, labels 16, loss 4, lse 16; backward reads logits, labels, lse and writes 800 again
  EXPECT_EQ(cost_of(loss.program, loss.program.op(0)).bytes, 800.0 + 16 + 4 + 16);
  EXPECT_EQ(cost_of(loss.program, loss.program.op(1)).bytes, 1600.0 + 16 + 16);
  EXPECT_EQ(cost_of(loss.program, loss.program.op(1)).flop, 1200.0);
}

TEST(CrossEntropy, MismatchesAreRefused) {
  Program program;
  const ValueId logits = source(program, "logits", DType::f32, {4, 3});
  const ValueId labels = source(program, "labels", DType::i32, {3});

  EXPECT_EQ(program_error([&] { (void)cross_entropy_forward(program, f32_math, "loss", logits, labels); }),
            "cross_entropy_forward: tensor 'labels' has shape [3]; expected [4]");
}

}  // namespace cross_entropy_test
}  // namespace gpubench::testing
