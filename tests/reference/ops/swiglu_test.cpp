#include <gtest/gtest.h>

#include <cmath>

#include "reference/ops/pointwise.h"
#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace swiglu_test {

constexpr double u32 = 0x1p-24;

// s(ln 3) = 3/4, so that silu(ln 3) = 3/4 ln 3 and its slope is 3/4 (1 + ln 3 / 4).
TEST(Swiglu, HasItsKnownValues) {
  Program p;
  const ValueId gate = source(p, "gate", DType::f64, {3});
  const ValueId up = source(p, "up", DType::f64, {3});
  const ValueId dy = source(p, "dy", DType::f64, {3});
  (void)swiglu_forward(p, f64_math, "forward", gate, up);
  (void)swiglu_backward(p, f64_math, "backward", gate, up, dy);
  TextbookRun run(p);
  const double ln3 = std::log(3.0);
  run.set(gate, {0.0, ln3, -ln3});
  run.set(up, {5.0, 2.0, -4.0});
  run.set(dy, {1.0, 3.0, 0.5});

  const std::vector<Expected> y = run.judge(0, 0);
  EXPECT_EQ(y[0].value, 0.0);
  EXPECT_DOUBLE_EQ(y[1].value, 1.5 * ln3);
  EXPECT_DOUBLE_EQ(y[2].value, ln3);  // -4 times -ln 3 / 4
  const std::vector<Expected> dgate = run.judge(1, 0);
  EXPECT_EQ(dgate[0].value, 2.5);  // 1 * 5 * 1/2
  EXPECT_DOUBLE_EQ(dgate[1].value, 6.0 * 0.75 * (1.0 + 0.25 * ln3));
  EXPECT_DOUBLE_EQ(dgate[2].value, -2.0 * 0.25 * (1.0 - 0.75 * ln3));
  const std::vector<Expected> dup = run.judge(1, 1);
  EXPECT_DOUBLE_EQ(dup[1].value, 3.0 * 0.75 * ln3);
  EXPECT_DOUBLE_EQ(dup[2].value, -0.125 * ln3);
}

TEST(Swiglu, TheGradientAgreesWithDifferences) {
  Program p;
  const ValueId gate = source(p, "gate", DType::f64, {6});
  const ValueId up = source(p, "up", DType::f64, {6});
  const ValueId y = swiglu_forward(p, f64_math, "swiglu", gate, up);

  expect_derivative_agrees(p, y, {{gate, {-6.0, -1.5, -0.1, 0.0, 0.7, 4.0}}, {up, {1.0, -2.0, 0.5, 3.0, -0.25, 2.0}}},
                           {gate, up});
}

struct Element {
  float gate, up, dy;
};
std::vector<Element> elements() {
  std::vector<Element> all;
  for (int i = -3000; i <= 3000; ++i) {
    const auto at = static_cast<float>(i);
    all.push_back({at * 0.0037F, 1.0F + at * 0.001F, 0.3F - at * 0.0007F});
  }
  return all;
}

/// Rejected elements of forward, dgate and dup, if computed by `arithmetic`.
template <class Arithmetic>
std::array<int, 3> rejected(Arithmetic arithmetic) {
  const std::vector<Element> all = elements();
  const auto n = static_cast<std::int64_t>(all.size());
  Program p;
  const ValueId gate = source(p, "gate", DType::f32, {n});
  const ValueId up = source(p, "up", DType::f32, {n});
  const ValueId dy = source(p, "dy", DType::f32, {n});
  (void)swiglu_forward(p, f32_math, "forward", gate, up);
  (void)swiglu_backward(p, f32_math, "backward", gate, up, dy);
  TextbookRun run(p);
  std::array<std::vector<double>, 3> values;
  for (const Element& e : all) {
    values[0].push_back(e.gate);
    values[1].push_back(e.up);
    values[2].push_back(e.dy);
  }
  run.set(gate, values[0]);
  run.set(up, values[1]);
  run.set(dy, values[2]);
  const std::array judged{run.judge(0, 0), run.judge(1, 0), run.judge(1, 1)};
  std::array<int, 3> count{};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::array<float, 3> got = arithmetic(all[i]);
    for (std::size_t k = 0; k < 3; ++k) count[k] += within(judged[k][i], DType::f32, got[k]) ? 0 : 1;
  }
  return count;
}

std::array<float, 3> with_logistic(const Element& e, float s) {
  return {e.gate * s * e.up, e.dy * e.up * (s * (1.0F + e.gate * (1.0F - s))), e.dy * (e.gate * s)};
}

TEST(Swiglu, TheBoundsAcceptF32Arithmetic) {
  const auto by_exp = [](const Element& e) { return with_logistic(e, 1.0F / (1.0F + std::exp(-e.gate))); };
  EXPECT_EQ(rejected(by_exp), (std::array{0, 0, 0}));
  // As on devices: 2^x, with the argument brought to base 2 in f32.
  const auto by_exp2 = [](const Element& e) {
    return with_logistic(e, 1.0F / (1.0F + std::exp2(-1.44269504F * e.gate)));
  };
  EXPECT_EQ(rejected(by_exp2), (std::array{0, 0, 0}));
}

TEST(Swiglu, TheBoundsRejectArithmeticIn16BitsAndGelu) {
  const int all = static_cast<int>(elements().size());
  const auto narrow = [](const Element& e) {
    return with_logistic(e, static_cast<float>(round_to(DType::bf16, 1.0 / (1.0 + std::exp(-e.gate)))));
  };
  const auto gelu = [](const Element& e) { return with_logistic(e, 0.5F * std::erfc(-e.gate * 0.70710678F)); };
  for (const auto& wrong : {rejected(narrow), rejected(gelu)}) {
    for (const int count : wrong) EXPECT_GT(count, all * 6 / 10);
  }
}

TEST(Swiglu, FarOutTheBoundsStayFinite) {
  Program p;
  const ValueId gate = source(p, "gate", DType::f32, {4});
  const ValueId up = source(p, "up", DType::f32, {4});
  (void)swiglu_backward(p, f32_math, "backward", gate, up, up);
  TextbookRun run(p);
  run.set(gate, {-1e30, -200.0, 200.0, 1e30});
  run.set(up, {1.0, 1.0, 1.0, 1.0});
  for (const int output : {0, 1}) {
    for (const Expected& judged : run.judge(0, output))
      EXPECT_TRUE(std::isfinite(judged.value) && std::isfinite(judged.bound)) << judged.value << " " << judged.bound;
  }
  EXPECT_DOUBLE_EQ(run.judge(0, 0)[2].value, 1.0);
  EXPECT_NEAR(run.judge(0, 0)[2].bound, 2.0 * 200.0 * u32, 15.0 * u32);
}

}  // namespace swiglu_test
}  // namespace gpubench::testing
