// Cross-entropy and its gradient in one op. The bound must accept both ways to compute the gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
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

/// Gradients of a row in f32, by maximum and sum of the row without its last `missing` classes.
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
  for (std::size_t row = 0; row < rows; ++row) logits[row * classes + classes - 1] = 3.9;
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

// bf16 logits [4, 100] 800 bytes, labels 16, loss 4, lse 16, dlogits 800; FLOP of the two ops: 4 and 3 per logit.
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

// Row 0: logits 0 and ln 3, p = 1/4, 3/4, lse = 2 ln 2; row 1 is ignored. s = 1/2 and z = 1/4: the loss is 2 ln 2 -
// (ln 3) / 4 + (ln 2)^2, the gradient p (1 + ln 2) - 3/4 at the label and p (1 + ln 2) - 1/4 elsewhere.
TEST(CrossEntropyTerms, HaveTheirHandWorkedValues) {
  const CrossEntropy attributes{.ignores = true, .ignore_index = 1, .label_smoothing = 0.5, .z_loss = 0.25};
  Program program;
  const ValueId logits = source(program, "logits", DType::f64, {2, 2});
  const ValueId labels = source(program, "labels", DType::i32, {2});
  const ValueId dloss = source(program, "dloss", DType::f64, {1});
  const auto [loss, lse] = cross_entropy_forward(program, f64_math, "loss", logits, labels, attributes);
  const ValueId dlogits =
      cross_entropy_backward(program, f64_math, "gradient", logits, labels, lse, false, attributes, dloss);
  const auto both = cross_entropy_forward_backward(program, f64_math, "both", logits, labels, false, attributes, dloss);
  TextbookRun run(program);
  run.set(logits, {0, std::log(3.0), 5, 6});
  run.set(labels, {0, 1});
  run.set(dloss, {8});
  run.run();
  const double k = 1.0 + ln2;

  for (const ValueId result : {loss, both.loss})
    expect_near(run.get(result), {2 * ln2 - std::log(3.0) / 4 + ln2 * ln2}, 1e-15);
  for (const ValueId result : {dlogits, both.dlogits})
    expect_near(run.get(result), {8 * (k / 4 - 0.75), 8 * (0.75 * k - 0.25), 0, 0}, 1e-14);
}

TEST(CrossEntropyTerms, TheGradientAgreesWithDifferencesOfTheLoss) {
  constexpr std::int64_t rows = 3, classes = 5;
  const CrossEntropy attributes{.ignores = true, .label_smoothing = 0.3, .z_loss = 0.1};
  Program program;
  const ValueId logits = source(program, "logits", DType::f64, {rows, classes});
  const ValueId labels = source(program, "labels", DType::i32, {rows});
  const auto out = cross_entropy_forward_backward(program, f64_math, "both", logits, labels, false, attributes);
  const auto run_at = [&](std::size_t element, double step, ValueId wanted) {
    std::vector<double> values = spread(rows * classes, 1);
    values[element] += step;
    TextbookRun run(program);
    run.set(logits, values);
    run.set(labels, {4, -100, 2});
    run.run();
    return run.get(wanted);
  };
  const std::vector<double> gradient = run_at(0, 0.0, out.dlogits);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double slope = (run_at(i, 1e-5, out.loss)[0] - run_at(i, -1e-5, out.loss)[0]) / 2e-5;
    EXPECT_NEAR(gradient[i], slope, 1e-9) << i;
  }
}

// In f32 and in order; faults: no smoothing of other classes, no z-loss, the mean over all rows.
TEST(CrossEntropyTerms, BoundsAcceptF32AndRejectALostTerm) {
  constexpr std::size_t rows = 30, classes = 100;
  const CrossEntropy attributes{.ignores = true, .label_smoothing = 0.1, .z_loss = 1e-3};
  Program program;
  const ValueId logits = source(program, "logits", DType::f32, {rows, classes});
  const ValueId labels = source(program, "labels", DType::i32, {rows});
  (void)cross_entropy_forward_backward(program, f32_math, "both", logits, labels, false, attributes);
  TextbookRun run(program);
  std::vector<double> values = spread(rows * classes, 1);
  for (double& x : values) x = 4.0 * x + 1.0;
  run.set(logits, values);
  std::vector<double> classes_of(rows);
  for (std::size_t row = 0; row < rows; ++row) classes_of[row] = row % 3 == 1 ? -100.0 : static_cast<double>(3 * row);
  run.set(labels, classes_of);
  const std::vector<double> x = run.get(logits);
  const std::vector<Expected> loss = run.judge(0, 0), gradient = run.judge(0, 2);
  constexpr float n = 20.0F, s = 0.1F, z = 1e-3F;

  float total = 0.0F, unsmoothed = 0.0F, without_z = 0.0F;
  std::array<int, 4> accepted{};
  for (std::size_t row = 0; row < rows; ++row) {
    float sum = 0.0F, all = 0.0F;
    for (std::size_t c = 0; c < classes; ++c) sum += std::exp(static_cast<float>(x[row * classes + c]));
    for (std::size_t c = 0; c < classes; ++c) all += static_cast<float>(x[row * classes + c]);
    const float lse = std::log(sum);
    const bool counts = row % 3 != 1;
    for (std::size_t c = 0; c < classes; ++c) {
      const float p = std::exp(static_cast<float>(x[row * classes + c]) - lse);
      const float own = c == 3 * row ? 1.0F - s : 0.0F;
      const auto accepts = [&](float d) {
        return within(gradient[row * classes + c], DType::f32, counts ? d : 0.0F) ? 1 : 0;
      };
      const float right = (p * (1 + 2 * z * lse) - own - s / classes) * (1 / n);
      EXPECT_TRUE(accepts(right)) << row << " " << c;
      if (!counts) continue;
      accepted[0] += accepts((p * (1 + 2 * z * lse) - own) * (1 / n));
      accepted[1] += accepts((p - own - s / classes) * (1 / n));
      accepted[2] += accepts((p * (1 + 2 * z * lse) - own - s / classes) * (1 / 30.0F));
    }
    if (!counts) continue;
    const float target = (1.0F - s) * static_cast<float>(x[row * classes + 3 * row]);
    total += lse - target - s / classes * all + z * lse * lse;
    unsmoothed += lse - target + z * lse * lse;
    without_z += lse - target - s / classes * all;
  }

  for (const int wrong : accepted) EXPECT_LE(wrong, 20);
  EXPECT_TRUE(within(loss[0], DType::f32, total / n));
  for (const float wrong : {total / 30.0F, unsmoothed / n, without_z / n})
    EXPECT_FALSE(within(loss[0], DType::f32, wrong));
}

TEST(CrossEntropyTerms, WhereEveryRowIsIgnoredTheLossIsNaNAndTheGradientExactlyZero) {
  Program program;
  const ValueId logits = source(program, "logits", DType::f32, {1, 2});
  const ValueId labels = source(program, "labels", DType::i32, {1});
  (void)cross_entropy_forward_backward(program, f32_math, "both", logits, labels, false, {.ignores = true});
  TextbookRun run(program);
  run.set(logits, {1, 2});
  run.set(labels, {-100});

  EXPECT_TRUE(std::isnan(run.judge(0, 0)[0].value));
  for (const Expected& zero : run.judge(0, 2)) EXPECT_TRUE(zero.value == 0.0 && zero.bound == 0.0);
}

TEST(CrossEntropyTerms, ASmoothingOutsideItsRangeIsRefused) {
  Program program;
  const ValueId logits = source(program, "logits", DType::f32, {1, 2});
  const ValueId labels = source(program, "labels", DType::i32, {1});

  EXPECT_EQ(program_error([&] {
              (void)cross_entropy_forward(program, f32_math, "loss", logits, labels, {.label_smoothing = 1.5});
            }),
            "cross_entropy_forward: label_smoothing is not in [0, 1]");
}

}  // namespace cross_entropy_forward_backward_test
}  // namespace gpubench::testing
