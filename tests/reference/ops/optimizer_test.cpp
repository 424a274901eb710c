#include "reference/ops/optimizer.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace optimizer_test {

constexpr double u32 = 0x1p-24;

TEST(GradientNorm, IsTheNormOverAllTensors) {
  Program program;
  const std::array gradients{source(program, "g1", DType::bf16, {2}), source(program, "g2", DType::bf16, {1, 1})};
  const ValueId norm = gradient_norm(program, f32_math, "norm", gradients);
  TextbookRun run(program);
  run.set(gradients[0], {3, 0});
  run.set(gradients[1], {-4});
  run.run();

  EXPECT_EQ(run.get(norm), (std::vector<double>{5}));
  // T_G(9 + 0 + 16) / (2 * 5) + 2 u 5, T_G = 2 u sqrt(3) (25 + sqrt(81 + 256))
  const double sum = 2 * u32 * std::sqrt(3.0) * (25 + std::sqrt(337.0));
  EXPECT_NEAR(run.judge(0, 0)[0].bound, sum / 10 + 10 * u32, 1e-18);
  EXPECT_EQ(program.spec(norm).dtype, DType::f32);
}

TEST(GradientNorm, OfZeroIsExactlyZero) {
  Program program;
  const std::array gradients{source(program, "g", DType::f32, {3})};
  (void)gradient_norm(program, f32_math, "norm", gradients);
  TextbookRun run(program);
  run.set(gradients[0], {0, 0, 0});

  EXPECT_EQ(run.judge(0, 0)[0].value, 0.0);
  EXPECT_EQ(run.judge(0, 0)[0].bound, 0.0);
}

TEST(Clip, ScalesToTheLimitAndLeavesSmallGradientsAlone) {
  Program program;
  const ValueId norm = source(program, "norm", DType::f32, {1});
  const std::array gradients{source(program, "g1", DType::f32, {2}), source(program, "g2", DType::f32, {1})};
  const std::vector<ValueId> clipped = clip(program, {2.0}, f32_math, "clip", norm, gradients);
  TextbookRun run(program);
  const auto clipped_at = [&](double value) {
    run.set(norm, {value});
    run.set(gradients[0], {3, 0});
    run.set(gradients[1], {-4});
    return values_of(run.judge(0, 1));
  };

  EXPECT_EQ(clipped_at(1.5), (std::vector<double>{-4}));
  expect_near(clipped_at(5.0), {-4.0 * 2.0 / 5.000001}, 1e-15);
  EXPECT_DOUBLE_EQ(run.judge(0, 0)[0].bound, 4 * u32 * 3.0 * 2.0 / 5.000001);
  EXPECT_EQ(program.value(clipped[1]).updates, gradients[1]);
  EXPECT_EQ(program.spec(clipped[0]).name, "g1'");
}

struct OneParameter {
  Program program;
  ValueId lr, step;
  AdamWTensor tensor;
  OneParameter(const AdamW& attributes, DType wide, DType narrow, std::int64_t count = 1) {
    lr = source(program, "lr", wide, {1});
    step = source(program, "step", DType::i32, {1});
    tensor = {source(program, "w", wide, {count}), source(program, "g", narrow, {count}),
              source(program, "m", wide, {count}), source(program, "v", wide, {count}), std::nullopt};
    if (attributes.copies) tensor.copy = source(program, "w16", narrow, {count});
    adamw(program, attributes, wide == DType::f64 ? f64_math : f32_math, "adamw", lr, step, std::array{tensor});
  }
  ValueId output(std::size_t which) const { return program.op(0).outputs[which]; }
};

// m' = 0.1 * 0.5, v' = 0.05 * 0.25; both corrections undo the factors: m'/bc1 = 0.5, sqrt(v'/bc2) = 0.5.
TEST(AdamW, TheFirstStepMovesByTheLearningRateAndDecays) {
  OneParameter one({}, DType::f64, DType::f64);
  TextbookRun run(one.program);
  run.set(one.lr, {0.1});
  run.set(one.step, {1});
  run.set(one.tensor.weight, {1});
  run.set(one.tensor.gradient, {0.5});
  run.set(one.tensor.m, {0});
  run.set(one.tensor.v, {0});
  run.run();

  expect_near(run.get(one.output(0)), {1.0 - 0.1 * (0.5 / (0.5 + 1e-8) + 0.1)}, 1e-15);
  expect_near(run.get(one.output(1)), {0.05}, 1e-16);
  expect_near(run.get(one.output(2)), {0.0125}, 1e-16);
}

// Second step with the same gradient: m' = 0.095 / 0.19, v' = 0.024375 / 0.0975: again 0.5 and 0.25.
TEST(AdamW, TheSecondStepCorrectsItsOwnBias) {
  AdamW attributes;
  attributes.weight_decay = 0.0;
  OneParameter one(attributes, DType::f64, DType::f64);
  TextbookRun run(one.program);
  run.set(one.lr, {0.1});
  run.set(one.step, {2});
  run.set(one.tensor.weight, {-2});
  run.set(one.tensor.gradient, {0.5});
  run.set(one.tensor.m, {0.05});
  run.set(one.tensor.v, {0.0125});
  run.run();

  expect_near(run.get(one.output(0)), {-2.0 - 0.1 * 0.5 / (0.5 + 1e-8)}, 1e-14);
  expect_near(run.get(one.output(1)), {0.095}, 1e-16);
  expect_near(run.get(one.output(2)), {0.024375}, 1e-16);
}

TEST(AdamW, OutputsAreUpdatesInTheDocumentedOrder) {
  AdamW attributes;
  attributes.copies = true;
  const OneParameter one(attributes, DType::f32, DType::bf16);
  const auto updated = [&](std::size_t which) { return *one.program.value(one.output(which)).updates; };

  ASSERT_EQ(one.program.op(0).outputs.size(), 4U);
  EXPECT_EQ(updated(0), one.tensor.weight);
  EXPECT_EQ(updated(1), one.tensor.m);
  EXPECT_EQ(updated(2), one.tensor.v);
  EXPECT_EQ(updated(3), *one.tensor.copy);
  EXPECT_EQ(one.program.spec(one.output(0)).name, "w'");
}

struct AdamWSamples {
  static constexpr std::int64_t count = 4000;
  std::vector<double> w = spread(count, 1), g = spread(count, 2), m = spread(count, 3), v = spread(count, 4);
  AdamWSamples() {
    for (std::size_t i = 0; i < w.size(); ++i) {
      g[i] *= i % 8 == 0 ? 1e-8 : 0.1;  // where epsilon matters, and where not
      m[i] *= i % 8 == 0 ? 1e-8 : 0.1;
      v[i] = m[i] * m[i] * (0.5 + std::fabs(v[i]));
      if (i % 8 != 3) continue;
      m[i] = -g[i] / 9.0 * (1.0 + 1e-7 * m[i]);  // 0.9 m and 0.1 g cancel,
      w[i] = 0.0;                                // and the weight does not hide it
    }
  }
  void set(TextbookRun& run, const OneParameter& one, double step) const {
    run.set(one.lr, {1e-3});
    run.set(one.step, {step});
    run.set(one.tensor.weight, w);
    run.set(one.tensor.gradient, g);
    run.set(one.tensor.m, m);
    run.set(one.tensor.v, v);
  }
};

struct StepF32 {
  float beta1 = 0.9F, beta2 = 0.95F, one_minus_beta1 = static_cast<float>(1 - 0.9),
        one_minus_beta2 = static_cast<float>(1 - 0.95);
  float correction1, correction2, epsilon = 1e-8F, decay = 0.1F, lr = 1e-3F;
  explicit StepF32(double step)
      : correction1(static_cast<float>(1 - std::pow(0.9, step))),
        correction2(static_cast<float>(1 - std::pow(0.95, step))) {}
  float m(float g, float old) const { return beta1 * old + one_minus_beta1 * g; }
  float v(float g, float old) const { return beta2 * old + one_minus_beta2 * g * g; }
  float w(float old, float g, float m_old, float v_old) const {
    const float denominator = std::sqrt(v(g, v_old) / correction2) + epsilon;
    return old - lr * (m(g, m_old) / correction1 / denominator + decay * old);
  }
};

// Faults: epsilon, bias-correction step, beta, coupled decay.
TEST(AdamW, BoundsTellCorrectF32FromWrongHyperparameters) {
  OneParameter one({}, DType::f32, DType::f32, AdamWSamples::count);
  TextbookRun run(one.program);
  const AdamWSamples samples;
  samples.set(run, one, 3);
  const auto w = run.judge(0, 0);
  const auto m = run.judge(0, 1);
  const auto v = run.judge(0, 2);
  const StepF32 correct(3);
  StepF32 epsilon = correct;
  epsilon.epsilon = 1e-6F;
  const StepF32 next(4);
  StepF32 undecayed = correct;
  undecayed.decay = 0.0F;
  StepF32 beta = correct;
  beta.beta2 = 0.99F;

  std::array<int, 5> accepted{};
  for (std::size_t i = 0; i < w.size(); ++i) {
    const auto f = [i](const std::vector<double>& x) { return static_cast<float>(x[i]); };
    EXPECT_TRUE(within(m[i], DType::f32, correct.m(f(samples.g), f(samples.m)))) << i;
    EXPECT_TRUE(within(v[i], DType::f32, correct.v(f(samples.g), f(samples.v)))) << i;
    const std::array steps{correct, epsilon, next, undecayed, beta};
    for (std::size_t s = 0; s < steps.size(); ++s)
      accepted[s] +=
          within(w[i], DType::f32, steps[s].w(f(samples.w), f(samples.g), f(samples.m), f(samples.v))) ? 1 : 0;
  }

  EXPECT_EQ(accepted[0], AdamWSamples::count);
  EXPECT_LT(accepted[1], AdamWSamples::count * 19 / 20);  // only one element in eight is about 1e-8
  for (std::size_t s = 2; s < accepted.size(); ++s) EXPECT_LT(accepted[s], AdamWSamples::count / 5) << s;
}

// The copy is a cast of the stored weight. t = 253.5 / 128 is halfway between two bf16 numbers, and rounds to the even
// one, 254 / 128. A weight of t - 2^-22 may be stored as t: its bound 2 u |w| = 1.98 2^-23 reaches above t - 2^-24,
// which rounds to t. But no number within 2 u |w| rounds to 254 / 128.
TEST(AdamW, TheCopyIsTheStoredWeightRoundedOnceBitForBit) {
  constexpr double t = 253.5 / 128.0;
  AdamW attributes;
  attributes.copies = true;
  OneParameter one(attributes, DType::f32, DType::bf16);
  TextbookRun run(one.program);
  run.set(one.lr, {0});
  run.set(one.step, {1});
  run.set(one.tensor.weight, {t - 0x1p-22});
  for (const ValueId zero : {one.tensor.gradient, one.tensor.m, one.tensor.v}) run.set(zero, {0});
  const Expected weight = run.judge(0, 0)[0];
  EXPECT_TRUE(within(weight, DType::f32, t));
  EXPECT_FALSE(within(weight, DType::bf16, 254.0 / 128.0));

  const OpCall& call = one.program.op(0);
  std::vector<TensorView> inputs;
  for (const ValueId input : call.inputs) inputs.push_back(run.view(input));
  const std::vector<TensorSpec> outputs = specs_of(one.program, call.outputs);
  std::array<std::byte, 4> stored{};
  const auto judged_copy = [&](double written) {
    store(DType::f32, stored.data(), written);
    std::vector<TensorView> views;
    for (const TensorSpec& output : outputs) views.emplace_back(output, stored.data());
    Expected copy;
    definition(call.kind).evaluate({call, inputs, outputs, views}, 3, std::array{std::int64_t{0}}, {&copy, 1});
    return copy;
  };

  EXPECT_TRUE(within(judged_copy(t), DType::bf16, 254.0 / 128.0));
  EXPECT_FALSE(within(judged_copy(t), DType::bf16, 253.0 / 128.0));
  EXPECT_TRUE(within(judged_copy(t - 0x1p-23), DType::bf16, 253.0 / 128.0));
  EXPECT_FALSE(within(judged_copy(t - 0x1p-23), DType::bf16, 254.0 / 128.0));
  EXPECT_TRUE(judged_copy(-0.0).bitwise);
}

TEST(AdamW, BeforeItHasRunTheCopyHasTheValueOfTheRoundedWeight) {
  AdamW attributes;
  attributes.copies = true;
  OneParameter one(attributes, DType::f32, DType::bf16, AdamWSamples::count);
  TextbookRun run(one.program);
  const AdamWSamples samples;
  samples.set(run, one, 7);
  run.set(*one.tensor.copy, samples.w);

  std::vector<double> weights = values_of(run.judge(0, 0));
  for (double& weight : weights) weight = round_to(DType::f32, weight);
  EXPECT_EQ(values_of(run.judge(0, 3)), weights);
  for (int output = 0; output < 4; ++output) expect_subsets_agree(run, 0, output);
}

// As AdamW's first step with g = 5, which a norm of 10 and a limit of 1 make 0.5 (to one part in ten million).
TEST(ClipAdamW, IsTheStepOfAClippedGradient) {
  Program program;
  const ValueId norm = source(program, "norm", DType::f64, {1});
  const ValueId lr = source(program, "lr", DType::f64, {1});
  const ValueId step = source(program, "step", DType::i32, {1});
  const AdamWTensor tensor{source(program, "w", DType::f64, {1}), source(program, "g", DType::f64, {1}),
                           source(program, "m", DType::f64, {1}), source(program, "v", DType::f64, {1}), std::nullopt};
  clip_adamw(program, {}, f64_math, "step1", norm, lr, step, std::array{tensor});
  const auto after = [&](double norm_value) {
    TextbookRun run(program);
    run.set(norm, {norm_value});
    run.set(lr, {0.1});
    run.set(step, {1});
    run.set(tensor.weight, {1});
    run.set(tensor.gradient, {5});
    run.set(tensor.m, {0});
    run.set(tensor.v, {0});
    run.run();
    std::vector<double> results;
    for (const ValueId output : program.op(0).outputs) results.push_back(run.get(output)[0]);
    return results;
  };
  const double g = 5.0 / 10.000001;

  expect_near(after(10.0), {1.0 - 0.1 * (g / (g + 1e-8) + 0.1), 0.1 * g, 0.05 * g * g}, 1e-15);
  expect_near(after(0.5), {1.0 - 0.1 * (5.0 / (5.0 + 1e-8) + 0.1), 0.5, 1.25}, 1e-14);
}

// The clip's error, 4 u of a gradient, adds to AdamW's bounds: 0.1 of it for m', twice its part 0.05 g^2 for v'.
TEST(ClipAdamW, AClippedGradientsErrorCountsInEveryOutput) {
  const auto bounds = [](bool clips) {
    Program program;
    const ValueId norm = source(program, "norm", DType::f32, {1});
    const ValueId lr = source(program, "lr", DType::f32, {1});
    const ValueId step = source(program, "step", DType::i32, {1});
    const AdamWTensor tensor{source(program, "w", DType::f32, {1}), source(program, "g", DType::f32, {1}),
                             source(program, "m", DType::f32, {1}), source(program, "v", DType::f32, {1}),
                             std::nullopt};
    if (clips) {
      clip_adamw(program, {}, f32_math, "op", norm, lr, step, std::array{tensor});
    } else {
      adamw(program, {}, f32_math, "op", lr, step, std::array{tensor});
    }
    TextbookRun run(program);
    run.set(norm, {0.25});
    run.set(lr, {0.5});
    run.set(step, {1});
    run.set(tensor.weight, {0});
    run.set(tensor.gradient, {2});
    run.set(tensor.m, {0});
    run.set(tensor.v, {0});
    std::vector<double> result;
    for (int output = 0; output < 3; ++output) result.push_back(run.judge(0, output)[0].bound);
    return result;
  };
  const std::vector<double> plain = bounds(false), clipped = bounds(true);

  EXPECT_NEAR(clipped[1] - plain[1], 4 * u32 * 0.1 * 2.0, 1e-15);
  EXPECT_NEAR(clipped[2] - plain[2], 8 * u32 * 0.05 * 4.0, 1e-15);
  // m' / bc1 / (sqrt(v' / bc2) + epsilon) = 1: 4 u of it for v', and 4 u for m'.
  EXPECT_NEAR(clipped[0] - plain[0], 0.5 * 8 * u32, 1e-14);
}

// m' = 0.1 g, v' = 0.05 g^2 with g = 0.5 + 0.25 w = 0.75: the corrections undo the factors, and lr (g / |g|) is left.
TEST(Adam, TheDecayIsPartOfTheGradient) {
  OneParameter one({.weight_decay = 0.25, .l2 = true}, DType::f64, DType::f64);
  TextbookRun run(one.program);
  run.set(one.lr, {0.1});
  run.set(one.step, {1});
  run.set(one.tensor.weight, {1});
  run.set(one.tensor.gradient, {0.5});
  run.set(one.tensor.m, {0});
  run.set(one.tensor.v, {0});
  run.run();

  expect_near(run.get(one.output(0)), {1.0 - 0.1 * (0.75 / (0.75 + 1e-8))}, 1e-15);
  expect_near(run.get(one.output(1)), {0.075}, 1e-16);
  expect_near(run.get(one.output(2)), {0.05 * 0.5625}, 1e-16);
}

// In f32; gradient and decay nearly cancel in every eighth element. Faults: lost or decoupled decay.
TEST(Adam, BoundsTellCorrectF32FromAnotherDecay) {
  OneParameter one({.l2 = true}, DType::f32, DType::f32, AdamWSamples::count);
  TextbookRun run(one.program);
  AdamWSamples samples;
  for (std::size_t i = 0; i < samples.w.size(); i += 8) samples.g[i] = -0.1 * samples.w[i] * (1 + 1e-6);
  samples.set(run, one, 3);
  const auto w = run.judge(0, 0), m = run.judge(0, 1), v = run.judge(0, 2);
  StepF32 step(3);
  step.decay = 0.0F;
  std::array<int, 3> accepted{};
  for (std::size_t i = 0; i < w.size(); ++i) {
    const auto f = [i](const std::vector<double>& x) { return static_cast<float>(x[i]); };
    const float g = f(samples.g) + 0.1F * f(samples.w);
    EXPECT_TRUE(within(m[i], DType::f32, step.m(g, f(samples.m)))) << i;
    EXPECT_TRUE(within(v[i], DType::f32, step.v(g, f(samples.v)))) << i;
    const float right = step.w(f(samples.w), g, f(samples.m), f(samples.v));
    const float lost = step.w(f(samples.w), f(samples.g), f(samples.m), f(samples.v));
    const float decoupled = lost - 1e-3F * 0.1F * f(samples.w);
    for (const auto& [k, result] : {std::pair{0, right}, {1, lost}, {2, decoupled}})
      accepted[static_cast<std::size_t>(k)] += within(w[i], DType::f32, result) ? 1 : 0;
  }

  EXPECT_EQ(accepted[0], AdamWSamples::count);
  for (const int wrong : {accepted[1], accepted[2]}) EXPECT_LT(wrong, AdamWSamples::count / 4);  // of them, w = 0
}

struct OneLionParameter {
  Program program;
  ValueId lr = source(program, "lr", DType::f32, {1});
  SgdTensor tensor{source(program, "w", DType::f32, {3}),
                   source(program, "g", DType::f32, {3}),
                   source(program, "m", DType::f32, {3}),
                   {}};
  explicit OneLionParameter(const Lion& attributes) {
    lion(program, attributes, f32_math, "lion", lr, std::array{tensor});
  }
};

// beta1 = 3/4, beta2 = 1/2: 0.75 m + 0.25 g = 1, -1 and 0, so w = 2 moves by -0.5 (1 + 0.25 2) and so on.
TEST(Lion, MovesByTheSignOfTheBlendAndThenBlendsTheMoment) {
  OneLionParameter one({.beta1 = 0.75, .beta2 = 0.5, .weight_decay = 0.25});
  TextbookRun run(one.program);
  run.set(one.lr, {0.5});
  run.set(one.tensor.weight, {2, 2, 2});
  run.set(one.tensor.gradient, {1, -7, 0});
  run.set(one.tensor.m, {1, 1, 0});
  run.run();

  EXPECT_EQ(run.get(one.program.op(0).outputs[0]), (std::vector<double>{1.25, 2.25, 1.75}));
  EXPECT_EQ(run.get(one.program.op(0).outputs[1]), (std::vector<double>{1, -3, 0}));
}

// 0.9 m + 0.1 g is one f32 unit from 0, so rounding may change its sign; at 1e-3 it may not.
TEST(Lion, ASignThatRoundingDecidesMayBeEitherAndNoOther) {
  OneLionParameter one({});
  TextbookRun run(one.program);
  run.set(one.lr, {0.25});
  run.set(one.tensor.weight, {1, 1, 1});
  run.set(one.tensor.gradient, {-9.0 * (1 + 0x1p-23), -9.01, -8.99});
  run.set(one.tensor.m, {1, 1, 1});
  const std::vector<Expected> w = run.judge(0, 0);

  for (const double result : {0.75, 1.0, 1.25}) {
    EXPECT_TRUE(within(w[0], DType::f32, result)) << result;
    EXPECT_EQ(within(w[1], DType::f32, result), result == 1.25) << result;
    EXPECT_EQ(within(w[2], DType::f32, result), result == 0.75) << result;
  }
  EXPECT_FALSE(within(w[0], DType::f32, 1.26));
}

struct OneSgdParameter {
  Program program;
  ValueId lr;
  SgdTensor tensor;
  explicit OneSgdParameter(const Sgd& attributes, DType wide, DType narrow, std::int64_t count = 1) {
    lr = source(program, "lr", wide, {1});
    tensor = {source(program, "w", wide, {count}),
              source(program, "g", narrow, {count}),
              source(program, "m", wide, {count}),
              {}};
    if (attributes.copies) tensor.copy = source(program, "w16", narrow, {count});
    sgd(program, attributes, wide == DType::f64 ? f64_math : f32_math, "sgd", lr, std::array{tensor});
  }
  void set(TextbookRun& run, double w, double g, double m) const {
    run.set(lr, {0.5});
    run.set(tensor.weight, {w});
    run.set(tensor.gradient, {g});
    run.set(tensor.m, {m});
  }
};

// Two steps of torch.optim.SGD(lr=0.5, momentum=0.75, weight_decay=0.25) from w = 2 with g = 1, then g = -1, by hand:
// d = 1.5, m = 1.5, w = 1.25; d = -0.6875, m = 0.4375, w = 1.03125. With nesterov the steps are d + 0.75 m = 2.625,
// w = 0.6875; d = -0.828125, m = 0.296875, d + 0.75 m = -0.60546875, w = 0.990234375.
TEST(Sgd, TwoStepsAreThoseOfPyTorch) {
  for (const bool nesterov : {false, true}) {
    const OneSgdParameter one({.momentum = 0.75, .weight_decay = 0.25, .nesterov = nesterov}, DType::f64, DType::f64);
    TextbookRun run(one.program);
    const auto after = [&](double w, double g, double m) {
      one.set(run, w, g, m);
      run.run();
      return std::array{run.get(one.program.op(0).outputs[0])[0], run.get(one.program.op(0).outputs[1])[0]};
    };
    const auto first = after(2.0, 1.0, 0.0);
    const auto second = after(first[0], -1.0, first[1]);

    EXPECT_EQ(first, (std::array{nesterov ? 0.6875 : 1.25, 1.5}));
    EXPECT_EQ(second, nesterov ? (std::array{0.990234375, 0.296875}) : (std::array{1.03125, 0.4375}));
  }
}

// Two roundings per term, none fused. Faults: momentum, lost decay, Nesterov's step instead of the plain one.
TEST(Sgd, BoundsTellCorrectF32FromWrongHyperparameters) {
  constexpr std::int64_t count = 4000;
  const auto f = [](double x) { return static_cast<float>(x); };
  const auto moment = [](float w, float g, float m, float mu, float decay) { return mu * m + (g + decay * w); };
  for (const bool nesterov : {false, true}) {
    const OneSgdParameter one({.weight_decay = 0.01, .nesterov = nesterov}, DType::f32, DType::f32, count);
    std::vector<double> w = spread(count, 1), g = spread(count, 2), m = spread(count, 3);
    for (std::size_t i = 0; i < w.size(); i += 4) {
      m[i] = -g[i] / 0.9 * (1.0 + 1e-7 * m[i]);  // 0.9 m and g cancel,
      w[i] = 0.0;                                // and the weight does not hide it
    }
    TextbookRun run(one.program);
    run.set(one.lr, {0.5});
    run.set(one.tensor.weight, w);
    run.set(one.tensor.gradient, g);
    run.set(one.tensor.m, m);
    const auto weights = run.judge(0, 0), moments = run.judge(0, 1);
    std::array<int, 4> accepted{};
    for (std::size_t i = 0; i < w.size(); ++i) {
      const float w0 = f(w[i]), g0 = f(g[i]), m0 = f(m[i]);
      EXPECT_TRUE(within(moments[i], DType::f32, moment(w0, g0, m0, 0.9F, 0.01F))) << i;
      const auto step = [&](float mu, float decay, bool look_ahead) {
        const float next = moment(w0, g0, m0, mu, decay);
        return w0 - 0.5F * (look_ahead ? (g0 + decay * w0) + mu * next : next);
      };
      const std::array results{step(0.9F, 0.01F, nesterov), step(0.91F, 0.01F, nesterov), step(0.9F, 0.0F, nesterov),
                               step(0.9F, 0.01F, !nesterov)};
      for (std::size_t s = 0; s < results.size(); ++s)
        accepted[s] += within(weights[i], DType::f32, results[s]) ? 1 : 0;
    }

    EXPECT_EQ(accepted[0], count);
    EXPECT_LT(accepted[1], count / 20);
    EXPECT_LT(accepted[2], count * 6 / 20);  // a weight of 0 has no decay
    EXPECT_LT(accepted[3], count * 6 / 20);
  }
}

TEST(Sgd, CostsAreItsReadsAndWrites) {
  const OneSgdParameter mixed({.weight_decay = 1e-4, .copies = true}, DType::f32, DType::bf16, 1000);
  const OneSgdParameter wide({.nesterov = true}, DType::f32, DType::f32, 1000);

  EXPECT_EQ(cost_of(mixed.program).bytes, 20.0 * 1000 + 4);  // w, m and g read; w, m and the copy written; and lr
  EXPECT_EQ(cost_of(mixed.program).flop, 6000.0);
  EXPECT_EQ(cost_of(wide.program).bytes, 20.0 * 1000 + 4);
  EXPECT_EQ(cost_of(wide.program).flop, 6000.0);
}

TEST(AdamW, SeveralTensorsKeepTheirOwnState) {
  Program program;
  const ValueId lr = source(program, "lr", DType::f32, {1});
  const ValueId step = source(program, "step", DType::i32, {1});
  std::vector<AdamWTensor> tensors;
  for (const std::string name : {"a", "b"})
    tensors.push_back({source(program, name + ".w", DType::f32, {1}),
                       source(program, name + ".g", DType::f32, {1}),
                       source(program, name + ".m", DType::f32, {1}),
                       source(program, name + ".v", DType::f32, {1}),
                       {}});
  adamw(program, {}, f32_math, "adamw", lr, step, tensors);
  TextbookRun run(program);
  run.set(lr, {0});
  run.set(step, {1});
  for (std::size_t t = 0; t < 2; ++t) {
    run.set(tensors[t].weight, {static_cast<double>(t + 1)});
    run.set(tensors[t].gradient, {static_cast<double>(8 * (t + 1))});
    run.set(tensors[t].m, {0});
    run.set(tensors[t].v, {0});
  }

  EXPECT_EQ(run.judge(0, 3)[0].value, 2.0);  // b's weight, with a learning rate of 0
  EXPECT_NEAR(run.judge(0, 4)[0].value, 1.6, 1e-15);
  EXPECT_NEAR(run.judge(0, 2)[0].value, 0.05 * 64, 1e-14);  // a's second moment
}

TEST(Optimizer, CostsAreThoseOfThePerformancePage) {
  AdamW attributes;
  attributes.copies = true;
  const OneParameter mixed(attributes, DType::f32, DType::bf16, 1000);
  const OneParameter wide({}, DType::f32, DType::f32, 1000);

  // 28 bytes per parameter either way (2+4+4+4 read and 4+4+4+2 written; 4*4 and 3*4), and lr and step
  EXPECT_EQ(cost_of(mixed.program).bytes, 28.0 * 1000 + 8);
  EXPECT_EQ(cost_of(wide.program).bytes, 28.0 * 1000 + 8);
  EXPECT_EQ(cost_of(wide.program).flop, 18000.0);

  Program program;
  const ValueId norm = source(program, "norm", DType::f32, {1});
  const std::array gradients{source(program, "g", DType::bf16, {50})};
  (void)gradient_norm(program, f32_math, "norm.op", gradients);
  (void)clip(program, {}, f32_math, "clip", norm, gradients);
  EXPECT_EQ(cost_of(program, program.op(0)).flop, 100.0);
  EXPECT_EQ(cost_of(program, program.op(0)).bytes, 104.0);
  EXPECT_EQ(cost_of(program, program.op(1)).bytes, 204.0);
}

TEST(Optimizer, MismatchesAreRefused) {
  Program program;
  const ValueId lr = source(program, "lr", DType::f32, {1});
  const ValueId step = source(program, "step", DType::f32, {1});
  const ValueId count = source(program, "count", DType::i32, {1});
  const ValueId w = source(program, "w", DType::f32, {4});
  const ValueId other = source(program, "other", DType::f32, {5});
  AdamW with_copies;
  with_copies.copies = true;
  const auto message = [&](const AdamW& attributes, ValueId steps, const AdamWTensor& tensor) {
    return program_error([&] { adamw(program, attributes, f32_math, "adamw", lr, steps, std::array{tensor}); });
  };

  EXPECT_EQ(message({}, step, {w, w, w, w, {}}), "adamw: tensor 'step' has type f32; expected i32");
  EXPECT_EQ(message({}, count, {w, other, w, w, {}}), "adamw: tensor 'other' has shape [5]; expected [4]");
  EXPECT_EQ(message(with_copies, count, {w, w, w, w, {}}),
            "adamw: tensor 'w' has no low-precision copy; expected one for every tensor with copies, else for none");
  EXPECT_EQ(program_error([&] { (void)gradient_norm(program, f32_math, "n", {}); }),
            "gradient_norm: no gradients given; expected at least one");
}

TEST(Optimizer, SubsetsOfUnitsAgreeWithAll) {
  Program program;
  const ValueId norm = source(program, "norm", DType::f32, {1});
  const std::array gradients{source(program, "g", DType::bf16, {17, 13})};
  (void)clip(program, {}, f32_math, "clip", norm, gradients);
  TextbookRun run(program);
  run.set(norm, {3});
  run.set(gradients[0], spread(17 * 13, 1));

  expect_subsets_agree(run, 0, 0);
}

}  // namespace optimizer_test
}  // namespace gpubench::testing
