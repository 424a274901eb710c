#include "reference/ops/optimizer.h"

#include <gtest/gtest.h>

#include <array>

#include "reference/ops/cross_entropy.h"
#include "reference/ops/transform/differentiate.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace loss_scaling_test {

struct Gradients {
  Program program;
  ValueId scale = source(program, "scale", DType::f32, {1});
  std::array<ValueId, 2> given{source(program, "half", DType::f16, {2}), source(program, "full", DType::f32, {1})};
  Unscale out = unscale(program, f32_math, "unscale", scale, given);
};

// 1.5 2^-15 / 1024 is below the smallest number of f16.
TEST(Unscale, TakesTheScaleOffAndKeepsSmallGradientsInF32) {
  Gradients g;
  TextbookRun run(g.program);
  run.set(g.scale, {1024});
  run.set(g.given[0], {1.5 * 0x1p-15, -512});
  run.set(g.given[1], {3});
  run.run();

  EXPECT_EQ(run.get(g.out.found_inf), (std::vector<double>{0}));
  EXPECT_EQ(run.get(g.out.gradients[0]), (std::vector<double>{1.5 * 0x1p-25, -0.5}));
  EXPECT_EQ(run.get(g.out.gradients[1]), (std::vector<double>{3.0 / 1024}));
  EXPECT_EQ(g.program.spec(g.out.gradients[0]).dtype, DType::f32);
  EXPECT_FALSE(g.program.value(g.out.gradients[0]).updates.has_value());
  EXPECT_EQ(g.program.value(g.out.gradients[1]).updates, g.given[1]);
}

TEST(Unscale, OneInfiniteOrNaNGradientOfAnyTensorIsFound) {
  for (const double bad : {HUGE_VAL, -HUGE_VAL, std::nan("")}) {
    for (const std::size_t where : {0U, 1U}) {
      Gradients g;
      TextbookRun run(g.program);
      run.set(g.scale, {2});
      run.set(g.given[0], {1, where == 0 ? bad : 1});
      run.set(g.given[1], {where == 1 ? bad : 1});
      run.run();

      EXPECT_EQ(run.get(g.out.found_inf), (std::vector<double>{1}));
      EXPECT_EQ(run.get(g.out.gradients[0])[0], 0.5);
    }
  }
}

// In f32, by the reciprocal of a scale that is not a power of two. Faults: the scale not removed, and the next scale.
TEST(Unscale, TheBoundAcceptsAProductWithTheReciprocalAndNoOtherScale) {
  Program program;
  const ValueId scale = source(program, "scale", DType::f32, {1});
  const std::array given{source(program, "g", DType::f32, {1000})};
  (void)unscale(program, f32_math, "unscale", scale, given);
  TextbookRun run(program);
  run.set(scale, {49152.7});
  run.set(given[0], spread(1000, 1));
  const auto stored = static_cast<float>(run.get(scale)[0]);
  const std::vector<double> g = run.get(given[0]);
  const std::vector<Expected> judged = run.judge(0, 1);

  for (std::size_t i = 0; i < g.size(); ++i) {
    const auto gradient = static_cast<float>(g[i]);
    EXPECT_TRUE(within(judged[i], DType::f32, gradient * (1.0F / stored)));
    EXPECT_TRUE(within(judged[i], DType::f32, gradient / stored));
    if (std::fabs(gradient) < 1e-3F) continue;
    EXPECT_FALSE(within(judged[i], DType::f32, gradient * (1.0F / (stored * (1 + 0x1p-20F)))));
  }
}

// torch._amp_update_scale_, by hand.
TEST(UpdateScale, GrowsAfterAnIntervalAndBacksOffAtOnce) {
  Program program;
  const ValueId scale = source(program, "scale", DType::f32, {1});
  const ValueId tracker = source(program, "tracker", DType::i32, {1});
  const ValueId found = source(program, "found_inf", DType::f32, {1});
  update_scale(program, {.growth = 4, .backoff = 0.25, .interval = 3}, "update", scale, tracker, found);
  const auto after = [&](double scale_before, double steps, double found_inf) {
    TextbookRun run(program);
    run.set(scale, {scale_before});
    run.set(tracker, {steps});
    run.set(found, {found_inf});
    run.run();
    return std::array{run.get(program.op(0).outputs[0])[0], run.get(program.op(0).outputs[1])[0]};
  };

  EXPECT_EQ(after(16, 0, 0), (std::array{16.0, 1.0}));
  EXPECT_EQ(after(16, 1, 0), (std::array{16.0, 2.0}));
  EXPECT_EQ(after(16, 2, 0), (std::array{64.0, 0.0}));
  EXPECT_EQ(after(16, 2, 1), (std::array{4.0, 0.0}));
  EXPECT_EQ(after(0x1p126, 2, 0), (std::array{0x1p126, 0.0}));  // 2^128 is infinite in f32
  EXPECT_EQ(program.value(program.op(0).outputs[0]).updates, scale);
  EXPECT_EQ(program_error([&] { update_scale(program, {.interval = 0}, "none", scale, tracker, found); }),
            "update_scale: growth, backoff and interval must be positive");
}

TEST(SkippedStep, EverythingStaysBitForBitWhereFoundInfIsSet) {
  Program program;
  const auto f32 = [&](const std::string& name, std::int64_t count = 2) {
    return source(program, name, DType::f32, {count});
  };
  const ValueId lr = f32("lr", 1), norm = f32("norm", 1), found = f32("found_inf", 1);
  const ValueId step = source(program, "step", DType::i32, {1});
  const auto adam = [&](const std::string& name) {
    return AdamWTensor{f32(name + ".w"), f32(name + ".g"), f32(name + ".m"), f32(name + ".v"),
                       source(program, name + ".copy", DType::bf16, {2})};
  };
  const std::array a{adam("a")}, b{adam("b")};
  const std::array c{SgdTensor{f32("c.w"), f32("c.g"), f32("c.m"), source(program, "c.copy", DType::bf16, {2})}};
  adamw(program, {.copies = true}, f32_math, "adamw", lr, step, a, found);
  clip_adamw(program, {{.copies = true}}, f32_math, "clip_adamw", norm, lr, step, b, found);
  sgd(program, {.copies = true}, f32_math, "sgd", lr, c, found);

  for (const double flag : {0.0, 1.0}) {
    TextbookRun run(program);
    for (std::size_t i = 0; i < program.values().size(); ++i) {
      const ValueId id{static_cast<int>(i)};
      if (!program.value(id).producer)
        run.set(id, std::vector<double>(static_cast<std::size_t>(program.spec(id).shape.elements()), 1.0));
    }
    run.set(found, {flag});
    for (const auto& t : {a[0], b[0]}) run.set(t.gradient, {flag == 0.0 ? 1.0 : std::nan(""), 1.0});
    for (int op = 0; op < 3; ++op) {
      const auto outputs = static_cast<int>(program.op(op).outputs.size());
      for (int output = 0; output < outputs; ++output) {
        for (const Expected& judged : run.judge(op, output))
          EXPECT_EQ(judged.value == 1.0 && judged.bitwise, flag != 0.0) << op << " " << output;
      }
    }
  }
}

TEST(LossScaling, AScaleThatSeedsTheBackwardComesOffAgain) {
  const auto gradient_with = [](std::optional<double> factor) {
    Program program;
    const ValueId logits = source(program, "logits", DType::f64, {2, 3});
    const ValueId labels = source(program, "labels", DType::i32, {2});
    const ValueId scale = source(program, "scale", DType::f64, {1});
    const ValueId loss = cross_entropy_forward(program, f64_math, "loss", logits, labels).loss;
    const Seed seed{loss, factor ? std::optional(scale) : std::nullopt};
    ValueId gradient = differentiate(program, std::array{seed}, std::array{logits}).at(logits);
    if (factor) gradient = unscale(program, f64_math, "unscale", scale, std::array{gradient}).gradients[0];
    TextbookRun run(program);
    run.set(logits, spread(6, 1));
    run.set(labels, {2, 0});
    run.set(scale, {factor.value_or(0.0)});
    run.run();
    return run.get(gradient);
  };

  expect_near(gradient_with(65536.0), gradient_with({}), 1e-16);
}

}  // namespace loss_scaling_test
}  // namespace gpubench::testing
