// Cross-entropy and its gradient in one op: means what the two ops mean, and its bound allows both ways to compute it.
#include <gtest/gtest.h>

#include <algorithm>
#include <numbers>

#include "reference/ops/cross_entropy.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace cross_entropy_forward_backward_test {

constexpr double ln2 = std::numbers::ln2;

struct Fused {
  Program program;
  ValueId logits, labels;
  CrossEntropyForwardBackward out;
  Fused(DType dtype, const Math& math, std::int64_t rows, std::int64_t classes, bool in_place = false)
      : logits(source(program, "logits", dtype, {rows, classes})),
        labels(source(program, "labels", DType::i32, {rows})),
        out(cross_entropy_forward_backward(program, math, "loss", logits, labels, in_place)) {}
};

// Row 0: logits 0 and ln 3, so p = 1/4, 3/4 and lse = ln 4. Row 1: equal logits, p = 1/2, lse = ln 2.
TEST(CrossEntropyForwardBackward, HasItsHandWorkedValues) {
  for (const bool in_place : {false, true}) {
    Fused fused(DType::f64, f64_math, 2, 2, in_place);
    TextbookRun run(fused.program);
    run.set(fused.logits, {0, std::log(3.0), 0, 0});
    run.set(fused.labels, {0, 1});
    run.run();

    expect_near(run.get(fused.out.lse), {2 * ln2, ln2}, 1e-15);
    expect_near(run.get(fused.out.loss), {1.5 * ln2}, 1e-15);
    expect_near(run.get(fused.out.dlogits), {-0.375, 0.375, 0.25, -0.25}, 1e-15);
  }
}

TEST(CrossEntropyForwardBackward, LossAndLseAreJudgedAsThoseOfTheForwardOp) {
  Fused fused(DType::bf16, f32_math, 7, 33);
  Program program;
  const ValueId logits = source(program, "logits", DType::bf16, {7, 33});
  const ValueId labels = source(program, "labels", DType::i32, {7});
  (void)cross_entropy_forward(program, f32_math, "loss", logits, labels);
  TextbookRun one(fused.program);
  TextbookRun two(program);
  const std::vector<double> classes{0, 32, 5, 6, 7, 31, 16};
  one.set(fused.logits, spread(7 * 33, 1));
  one.set(fused.labels, classes);
  two.set(logits, spread(7 * 33, 1));
  two.set(labels, classes);

  for (const int output : {0, 1}) {
    const std::vector<Expected> got = one.judge(0, output);
    const std::vector<Expected> want = two.judge(0, output);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].value, want[i].value) << output << " " << i;
      EXPECT_EQ(got[i].bound, want[i].bound) << output << " " << i;
    }
  }
}

// Central differences of the loss.
TEST(CrossEntropyForwardBackward, ItsGradientAgreesWithDifferencesOfItsLoss) {
  constexpr std::int64_t rows = 3, classes = 5;
  Fused fused(DType::f64, f64_math, rows, classes);
  const auto run_at = [&](std::size_t element, double step, ValueId wanted) {
    std::vector<double> logits = spread(rows * classes, 1);
    logits[element] += step;
    TextbookRun run(fused.program);
    run.set(fused.logits, logits);
    run.set(fused.labels, {4, 0, 2});
    run.run();
    return run.get(wanted);
  };
  const std::vector<double> gradient = run_at(0, 0.0, fused.out.dlogits);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double slope = (run_at(i, 1e-5, fused.out.loss)[0] - run_at(i, -1e-5, fused.out.loss)[0]) / 2e-5;
    EXPECT_NEAR(gradient[i], slope, 1e-9) << i;
  }
}

/// Gradients of one row in f32, from largest and sum of the row without its last `missing` classes.
struct FloatRow {
  std::vector<float> x;
  float largest = -1e30F;
  float sum = 0.0F;

  FloatRow(const std::vector<double>& all, std::size_t first, std::size_t classes, std::size_t missing) {
    for (std::size_t c = 0; c < classes; ++c) x.push_back(static_cast<float>(all[first + c]));
    largest = *std::max_element(x.begin(), x.end());
    for (std::size_t c = 0; c + missing < classes; ++c) sum += std::exp(x[c] - largest);
  }
  float through_lse(std::size_t c) const { return std::exp(x[c] - (largest + std::log(sum))); }
  float through_quotient(std::size_t c) const { return std::exp(x[c] - largest) / sum; }
};

TEST(CrossEntropyForwardBackward, TheBoundAllowsARoundedLseAndNoneAndRejectsAMissingClass) {
  constexpr std::size_t rows = 40, classes = 1000;
  Fused fused(DType::f32, f32_math, rows, classes);
  TextbookRun run(fused.program);
  std::vector<double> logits = spread(rows * classes, 1);
  for (double& x : logits) x *= 4.0;
  for (std::size_t row = 0; row < rows; ++row) logits[row * classes + classes - 1] = 3.9;  // among the largest
  run.set(fused.logits, logits);
  std::vector<double> labels(rows);
  for (std::size_t row = 0; row < rows; ++row) labels[row] = static_cast<double>(row * 17);
  run.set(fused.labels, labels);
  const std::vector<double> x = run.get(fused.logits);
  const std::vector<Expected> judged = run.judge(0, 2);

  int incomplete_accepted = 0, unscaled_accepted = 0;
  for (std::size_t row = 0; row < rows; ++row) {
    const FloatRow right(x, row * classes, classes, 0);
    const FloatRow incomplete(x, row * classes, classes, 1);
    for (std::size_t c = 0; c < classes; ++c) {
      const float one = c == row * 17 ? 1.0F : 0.0F;
      const auto accepts = [&](float gradient) { return within(judged[row * classes + c], DType::f32, gradient); };
      EXPECT_TRUE(accepts((right.through_lse(c) - one) * (1.0F / rows))) << row << " " << c;
      EXPECT_TRUE(accepts((right.through_quotient(c) - one) * (1.0F / rows))) << row << " " << c;
      // At the label a small p is lost in p - 1.
      if (c != row * 17) incomplete_accepted += accepts(incomplete.through_lse(c) * (1.0F / rows)) ? 1 : 0;
      unscaled_accepted += accepts(right.through_lse(c) - one) ? 1 : 0;
    }
    const std::size_t label = row * classes + row * 17;
    EXPECT_FALSE(within(judged[label], DType::f32, right.through_lse(row * 17) / rows)) << "label forgotten, " << row;
  }
  EXPECT_EQ(unscaled_accepted, 0);
  EXPECT_EQ(incomplete_accepted, 0);
}

TEST(CrossEntropyForwardBackward, ItsGradientIsItsDerivative) {
  Fused fused(DType::f32, f32_math, 2, 3);
  SingleOpTape tape(fused.program);
  tape.loss = fused.out.loss;
  tape.wanted_inputs = {fused.logits};
  const OpCall call = fused.program.op(0);
  definition(call.kind).derivative(fused.program, call, tape);

  ASSERT_EQ(tape.contributions.count(fused.logits), 1U);
  EXPECT_EQ(tape.contributions.find(fused.logits)->second, fused.out.dlogits);
  EXPECT_EQ(fused.program.ops().size(), 1U);
}

TEST(CrossEntropyForwardBackward, NothingMayFlowBackIntoItsGradient) {
  Fused fused(DType::f32, f32_math, 2, 3);
  SingleOpTape tape(fused.program);
  tape.loss = fused.out.loss;
  tape.given[fused.out.dlogits] = source(fused.program, "second", DType::f32, {2, 3});
  const OpCall call = fused.program.op(0);

  EXPECT_EQ(
      program_error([&] { definition(call.kind).derivative(fused.program, call, tape); }),
      "cross_entropy_forward_backward: op 'loss' has a gradient flowing into its outputs; expected its loss to be "
      "the seed");
}

TEST(CrossEntropyForwardBackward, ALabelOutsideTheClassesSpoilsItsRowOnly) {
  Fused fused(DType::f32, f32_math, 2, 2);
  TextbookRun run(fused.program);
  run.set(fused.logits, {0, 0, 0, 0});
  run.set(fused.labels, {1, -1});

  EXPECT_TRUE(std::isnan(run.judge(0, 0)[0].value));
  const std::vector<Expected> gradient = run.judge(0, 2);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(std::isnan(gradient[i].value), i >= 2) << i;
}

TEST(CrossEntropyForwardBackward, InPlaceGradientsUpdateTheLogits) {
  const Fused apart(DType::bf16, f32_math, 2, 3);
  const Fused in_place(DType::bf16, f32_math, 2, 3, true);

  EXPECT_FALSE(apart.program.value(apart.out.dlogits).updates.has_value());
  EXPECT_EQ(in_place.program.value(in_place.out.dlogits).updates, in_place.logits);
  EXPECT_EQ(in_place.program.spec(in_place.out.dlogits).dtype, DType::bf16);
  EXPECT_EQ(in_place.program.spec(in_place.out.lse).dtype, DType::f32);
}

TEST(CrossEntropyForwardBackward, SubsetsOfUnitsAgreeWithAll) {
  Fused fused(DType::bf16, f32_math, 23, 29);
  TextbookRun run(fused.program);
  run.set(fused.logits, spread(23 * 29, 1));
  run.set(fused.labels, std::vector<double>(23, 7.0));

  expect_subsets_agree(run, 0, 1);
  expect_subsets_agree(run, 0, 2);
}

// Of bf16 logits [4, 100] 800 bytes, labels 16, loss 4, lse 16, dlogits 800; the flop of the two ops, 4 and 3 a logit.
TEST(CrossEntropyForwardBackward, ReadsTheLogitsOnceAndDoesTheWorkOfTwoOps) {
  const Fused fused(DType::bf16, f32_math, 4, 100);

  EXPECT_EQ(cost_of(fused.program).bytes, 800.0 + 16 + 4 + 16 + 800);
  EXPECT_EQ(cost_of(fused.program).flop, 2800.0);
}

TEST(CrossEntropyForwardBackward, MismatchesAreRefused) {
  Program program;
  const ValueId logits = source(program, "logits", DType::f32, {4, 3});
  const ValueId labels = source(program, "labels", DType::f32, {4});

  EXPECT_EQ(program_error([&] { (void)cross_entropy_forward_backward(program, f32_math, "loss", logits, labels); }),
            "cross_entropy_forward_backward: tensor 'labels' has type f32; expected i32");
}

}  // namespace cross_entropy_forward_backward_test
}  // namespace gpubench::testing
