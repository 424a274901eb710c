#include "reference/ops/pointwise.h"

#include <gtest/gtest.h>

#include "reference/ops/shared_textbook.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace gelu_test {

constexpr double u32 = 0x1p-24;

TEST(Gelu, HasItsKnownValues) {
  // Phi(1), and GPT-2's form at 1 (Hendrycks and Gimpel's approximation)
  EXPECT_NEAR(gelu_value(GeluForm::erf, 1.0, u32).value, 0.84134474606854293, 1e-15);
  EXPECT_NEAR(gelu_value(GeluForm::tanh, 1.0, u32).value, 0.5 * (1.0 + std::tanh(0.79788456080286536 * 1.044715)),
              1e-15);
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    EXPECT_EQ(gelu_value(form, 0.0, u32).value, 0.0);
    EXPECT_EQ(gelu_slope(form, 0.0, u32).value, 0.5);
    EXPECT_DOUBLE_EQ(gelu_value(form, 50.0, u32).value, 50.0);
    EXPECT_DOUBLE_EQ(gelu_slope(form, 50.0, u32).value, 1.0);
    EXPECT_EQ(gelu_slope(form, -500.0, u32).value, 0.0);
  }
}

// x Phi(x) - x Phi(-x) = x (2 Phi(x) - 1) and Phi(x) + Phi(-x) = 1, so gelu(x) - gelu(-x) = x.
TEST(Gelu, DifferenceOfOppositeSidesIsTheInput) {
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    for (double x = 0.0; x < 8.0; x += 0.37)
      EXPECT_NEAR(gelu_value(form, x, u32).value - gelu_value(form, -x, u32).value, x, 1e-14);
  }
}

TEST(Gelu, SlopeAgreesWithDifferences) {
  for (const GeluForm form : {GeluForm::tanh, GeluForm::erf}) {
    Program program;
    const ValueId x = source(program, "x", DType::f64, {9});
    const ValueId y = gelu_forward(program, {form}, f64_math, "gelu", x);

    expect_derivative_agrees(program, y, {{x, {-4.0, -2.5, -1.0, -0.1, 0.0, 0.3, 1.0, 2.0, 3.5}}}, {x});
  }
}

std::vector<double> grid(double low, double high, int count) {
  std::vector<double> x;
  for (int i = 0; i < count; ++i) x.push_back(round_to(DType::f32, low + (high - low) * i / (count - 1)));
  return x;
}

float tanh_form(float x) { return 0.5F * x * (1.0F + std::tanh(0.7978845608F * (x + 0.044715F * x * x * x))); }
float erf_form(float x) { return 0.5F * x * (1.0F + std::erf(x * 0.70710678F)); }

TEST(Gelu, TheBoundAcceptsF32ArithmeticOfItsOwnForm) {
  for (const double x : grid(-6.0, 6.0, 4001)) {
    EXPECT_TRUE(within(gelu_value(GeluForm::tanh, x, u32), DType::f32, tanh_form(static_cast<float>(x)))) << x;
    EXPECT_TRUE(within(gelu_value(GeluForm::erf, x, u32), DType::f32, erf_form(static_cast<float>(x)))) << x;
  }
}

TEST(Gelu, TheBoundRejectsTheOtherForm) {
  int accepted = 0;
  for (const double x : grid(-4.0, -1.0, 301)) {
    accepted += within(gelu_value(GeluForm::tanh, x, u32), DType::f32, erf_form(static_cast<float>(x))) ? 1 : 0;
    accepted += within(gelu_value(GeluForm::erf, x, u32), DType::f32, tanh_form(static_cast<float>(x))) ? 1 : 0;
  }
  EXPECT_LT(accepted, 6);  // the curves cross once or twice; elsewhere they are hundreds of bounds apart
}

float tanh_slope(float x) {
  const float t = std::tanh(0.7978845608F * (x + 0.044715F * x * x * x));
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * 0.7978845608F * (1.0F + 0.134145F * x * x);
}

TEST(Gelu, TheSlopeBoundAcceptsF32Arithmetic) {
  for (const double x : grid(-6.0, 6.0, 4001))
    EXPECT_TRUE(within(gelu_slope(GeluForm::tanh, x, u32), DType::f32, tanh_slope(static_cast<float>(x)))) << x;
}

// tanh with a relative error, everything else in fp64.
double off_value(double x, double relative) {
  const double t = std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1.0 + std::tanh(t) * (1.0 + relative));
}
double off_slope(double x, double relative) {
  const double t = std::tanh(std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)) * (1.0 + relative);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * std::sqrt(2.0 / M_PI) * (1.0 + 0.134145 * x * x);
}

TEST(Gelu, OnlyTheProfileOfAnApproximateTanhAcceptsOneAndNotOneThatIsTwiceAsFarOff) {
  const double declared = tanh_error_of(Math{.approximate_tanh = true});
  EXPECT_EQ(declared, std::exp2(-11));
  EXPECT_EQ(tanh_error_of(Math{}), 0.0);
  int strict = 0, too_far = 0, all = 0;
  for (const double x : grid(-3.0, 3.0, 601)) {
    for (const double sign : {-1.0, 1.0}) {
      const double off = 0.99 * sign * declared;
      EXPECT_TRUE(within(gelu_value(GeluForm::tanh, x, u32, declared), DType::f32, off_value(x, off))) << x;
      EXPECT_TRUE(within(gelu_slope(GeluForm::tanh, x, u32, declared), DType::f32, off_slope(x, off))) << x;
      strict += within(gelu_value(GeluForm::tanh, x, u32), DType::f32, off_value(x, off)) ? 1 : 0;
      too_far +=
          within(gelu_value(GeluForm::tanh, x, u32, declared), DType::f32, off_value(x, 2.1 * sign * declared)) ? 1 : 0;
      ++all;
    }
  }
  EXPECT_LT(strict, all / 50);  // near 0, where tanh's error is multiplied with x twice
  EXPECT_LT(too_far, all / 50);
}

TEST(Gelu, TheProfileIsNamedInTheTextOfItsBoundAndNowhereElse) {
  const Math declared{.approximate_tanh = true};
  for (const auto text : {gelu_value_text, gelu_slope_text}) {
    EXPECT_NE(text(GeluForm::tanh, "x", declared).find("approximate tanh"), std::string::npos);
    EXPECT_EQ(text(GeluForm::tanh, "x", Math{}).find("approximate"), std::string::npos);
    EXPECT_EQ(text(GeluForm::erf, "x", declared), text(GeluForm::erf, "x", Math{}));
  }
}

TEST(Gelu, BackwardIsSlopeTimesGradient) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {3});
  const ValueId dy = source(program, "dy", DType::f32, {3});
  (void)gelu_backward(program, {GeluForm::erf}, f32_math, "backward", x, dy);
  TextbookRun run(program);
  run.set(x, {0, 1, -1});
  run.set(dy, {8, -2, 0});

  const std::vector<Expected> dx = run.judge(0, 0);

  EXPECT_EQ(dx[0].value, 4.0);
  EXPECT_NEAR(dx[1].value, -2.0 * (0.84134474606854293 + 0.24197072451914337), 1e-14);
  EXPECT_EQ(dx[2].value, 0.0);
  EXPECT_EQ(dx[2].bound, 0.0);
  EXPECT_DOUBLE_EQ(dx[0].bound, u32 * (8.0 * 4.0 + 2.0 * 4.0));  // |dy| u 4 at x = 0, and 2 u |dx|
}

TEST(Gelu, SubsetsOfUnitsAgreeWithAll) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {37, 41});
  const ValueId dy = source(program, "dy", DType::bf16, {37, 41});
  (void)gelu_forward(program, {}, f32_math, "forward", x);
  (void)gelu_backward(program, {}, f32_math, "backward", x, dy);
  TextbookRun run(program);
  run.set(x, spread(37 * 41, 1));
  run.set(dy, spread(37 * 41, 2));

  expect_subsets_agree(run, 0, 0);
  expect_subsets_agree(run, 1, 0);
}

TEST(Gelu, MovesEveryTensorOnce) {
  Program program;
  const ValueId x = source(program, "x", DType::bf16, {8, 4});
  const ValueId dy = source(program, "dy", DType::bf16, {8, 4});
  (void)gelu_forward(program, {}, f32_math, "forward", x);
  (void)gelu_backward(program, {}, f32_math, "backward", x, dy);

  EXPECT_EQ(cost_of(program, program.op(0)).bytes, 2.0 * 32 * 2);
  EXPECT_EQ(cost_of(program, program.op(1)).bytes, 3.0 * 32 * 2);
  EXPECT_EQ(cost_of(program, program.op(0)).flop, 9.0 * 32);
}

TEST(Gelu, AMismatchNamesTheTensorItsShapeAndWhatWasExpected) {
  Program program;
  const ValueId x = source(program, "x", DType::f32, {8, 4});
  const ValueId dy = source(program, "dy", DType::f32, {4, 8});
  const ValueId tokens = source(program, "tokens", DType::i32, {4});

  EXPECT_EQ(program_error([&] { (void)gelu_backward(program, {}, f32_math, "g", x, dy); }),
            "gelu_backward: tensor 'dy' has shape [4, 8]; expected [8, 4]");
  EXPECT_EQ(program_error([&] { (void)gelu_forward(program, {}, f32_math, "g", tokens); }),
            "gelu_forward: tensor 'tokens' has type i32; expected a floating-point type");
}

}  // namespace gelu_test
}  // namespace gpubench::testing
