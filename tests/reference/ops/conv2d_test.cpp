#include "reference/ops/conv2d.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/reference/ops/textbook_run.h"

namespace gpubench::testing {
namespace conv2d_test {

struct Example {
  Program program;
  Conv2d conv;
  Conv2dExtents e;
  ValueId x, filter, dy, y, dx, dfilter;

  Example(const Conv2d& attributes, const Shape& data, const Shape& weights, DType type = DType::f64)
      : conv(attributes) {
    const Math math = type == DType::f64 ? f64_math : f32_math;
    e = extents_of(conv, data, weights);
    x = source(program, "x", type, data);
    filter = source(program, "filter", type, weights);
    y = conv2d_forward(program, conv, math, "y", x, filter);
    dy = source(program, "dy", type, {e.n, e.p, e.q, e.k});
    dx = conv2d_backward_data(program, conv, math, "dx", dy, filter, e.h, e.w);
    dfilter = conv2d_backward_filter(program, conv, math, "dfilter", x, dy, e.r, e.s);
  }

  void fill(TextbookRun& run) const {
    run.set(x, spread(program.spec(x).shape.elements(), 1));
    run.set(filter, spread(program.spec(filter).shape.elements(), 2));
    run.set(dy, spread(program.spec(dy).shape.elements(), 3));
  }
};

// Unequal strides, pads and dilations, groups, and a filter that is not square.
Example crooked(DType type = DType::f64) {
  return {{.stride_h = 2, .stride_w = 3, .pad_h = 1, .pad_w = 2, .dilation_h = 2, .dilation_w = 1, .groups = 2},
          {2, 8, 11, 4},
          {6, 3, 2, 2},
          type};
}

double inner(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// The header's formula, index by index, in T; `shift` moves every tap down (a pad that is off by one).
template <class T>
std::vector<T> by_formula(const Example& s, const std::vector<double>& x, const std::vector<double>& filter,
                          std::int64_t shift = 0) {
  const auto& [n, h, w, c, k, r, ss, p, q] = s.e;
  const std::int64_t in = c / s.conv.groups, out = k / s.conv.groups;
  std::vector<T> y;
  for (std::int64_t i = 0; i < n * p * q * k; ++i) {
    const std::int64_t channel = i % k, column = i / k % q, row = i / k / q % p, image = i / k / q / p;
    T sum = 0;
    for (std::int64_t t = 0; t < r * ss * in; ++t) {
      const std::int64_t at_c = t % in, at_s = t / in % ss, at_r = t / in / ss;
      const std::int64_t at_h = row * s.conv.stride_h - s.conv.pad_h + at_r * s.conv.dilation_h + shift;
      const std::int64_t at_w = column * s.conv.stride_w - s.conv.pad_w + at_s * s.conv.dilation_w;
      if (at_h < 0 || at_h >= h || at_w < 0 || at_w >= w) continue;
      const std::int64_t at_x = ((image * h + at_h) * w + at_w) * c + channel / out * in + at_c;
      sum += static_cast<T>(x[at_x]) * static_cast<T>(filter[((channel * r + at_r) * ss + at_s) * in + at_c]);
    }
    y.push_back(sum);
  }
  return y;
}

TEST(Conv2d, AnImageOfNinePixelsWorkedOutByHand) {
  // 1 2 3 / 4 5 6 / 7 8 9 with a 2x2 filter of 1 10 / 100 1000 (cross-correlation: not flipped)
  Example s({}, {1, 3, 3, 1}, {1, 2, 2, 1});
  TextbookRun run(s.program);
  run.set(s.x, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  run.set(s.filter, {1, 10, 100, 1000});

  EXPECT_EQ(values_of(run.judge(0, 0)), (std::vector<double>{5421, 6532, 8754, 9865}));
}

TEST(Conv2d, GradientsOfAnImageWorkedOutByHand) {
  // Stride 2 on 3x3 with a 2x2 filter: one output pixel (dy = 2) that read the pixels 1 2 / 4 5.
  Example s({.stride_h = 2, .stride_w = 2}, {1, 3, 3, 1}, {1, 2, 2, 1});
  TextbookRun run(s.program);
  run.set(s.x, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  run.set(s.filter, {1, 10, 100, 1000});
  run.set(s.dy, {2});

  EXPECT_EQ(values_of(run.judge(1, 0)), (std::vector<double>{2, 20, 0, 200, 2000, 0, 0, 0, 0}));
  EXPECT_EQ(values_of(run.judge(2, 0)), (std::vector<double>{2, 4, 8, 10}));
}

TEST(Conv2d, FollowsTheFormulaWithStridesPadsDilationsAndGroups) {
  Example s = crooked();
  TextbookRun run(s.program);
  s.fill(run);

  expect_near(values_of(run.judge(0, 0)), by_formula<double>(s, run.get(s.x), run.get(s.filter)), 1e-12);
}

TEST(Conv2d, GradientsAreAdjointToTheForward) {
  // <conv(x, w), dy> = <x, dx> = <w, dw>, for shapes of all kinds
  std::vector<Example> examples;
  examples.push_back(crooked());
  examples.emplace_back(Conv2d{.stride_h = 2, .stride_w = 2}, Shape{3, 7, 6, 5}, Shape{4, 1, 1, 5});
  examples.emplace_back(Conv2d{.pad_h = 1, .pad_w = 1, .groups = 6}, Shape{1, 5, 5, 6}, Shape{12, 3, 3, 1});
  for (Example& s : examples) {
    TextbookRun run(s.program);
    s.fill(run);
    run.run();

    const double forward = inner(run.get(s.y), run.get(s.dy));
    EXPECT_GT(std::fabs(forward), 1e-3);
    EXPECT_LE(std::fabs(inner(run.get(s.x), run.get(s.dx)) - forward), 1e-11);
    EXPECT_LE(std::fabs(inner(run.get(s.filter), run.get(s.dfilter)) - forward), 1e-11);
  }
}

TEST(Conv2d, GradientsAgreeWithCentralDifferences) {
  Program p;
  const ValueId x = source(p, "x", DType::f64, {1, 5, 4, 4});
  const ValueId filter = source(p, "filter", DType::f64, {2, 3, 2, 2});
  const ValueId y = conv2d_forward(p, {.stride_h = 2, .pad_h = 1, .pad_w = 1, .groups = 2}, f64_math, "y", x, filter);

  expect_derivative_agrees(p, y, {{x, spread(80, 4)}, {filter, spread(24, 5)}}, {x, filter});
}

TEST(Conv2d, OnlyWantedGradientsAreComputed) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {1, 4, 4, 2});
  const ValueId filter = source(p, "filter", DType::f32, {2, 3, 3, 2});
  const ValueId y = conv2d_forward(p, {}, f32_math, "y", x, filter);
  SingleOpTape tape(p);
  tape.given[y] = source(p, "dy", DType::f32, p.spec(y).shape);
  tape.wanted_inputs = {filter};

  definition(conv2d_forward_kind).derivative(p, OpCall(p.op(0)), tape);

  ASSERT_EQ(p.ops().size(), 2U);
  EXPECT_EQ(p.op(1).kind, conv2d_backward_filter_kind);
}

TEST(Conv2d, TapsInThePaddingAreNoTermsOfTheBound) {
  // All ones, 3x3, pad 1: a corner sums 4 products, T = 2 u sqrt(4) (4 + 2) = 24 u; the middle 9, 2 u 3 (9 + 3) = 72 u.
  Example s({.pad_h = 1, .pad_w = 1}, {1, 3, 3, 1}, {1, 3, 3, 1}, DType::f32);
  TextbookRun run(s.program);
  run.set(s.x, std::vector<double>(9, 1.0));
  run.set(s.filter, std::vector<double>(9, 1.0));
  const auto y = run.judge(0, 0);

  EXPECT_EQ(y[0].value, 4.0);
  EXPECT_EQ(y[0].bound, 24 * 0x1p-24);
  EXPECT_EQ(y[4].value, 9.0);
  EXPECT_EQ(y[4].bound, 72 * 0x1p-24);
}

TEST(Conv2d, CorrectSinglePrecisionIsAcceptedAndAPadOffByOneRejected) {
  Example s({.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}, {2, 9, 9, 16}, {24, 3, 3, 16}, DType::bf16);
  TextbookRun run(s.program);
  s.fill(run);
  const auto judged = run.judge(0, 0);
  const auto right = by_formula<float>(s, run.get(s.x), run.get(s.filter));
  const auto shifted = by_formula<float>(s, run.get(s.x), run.get(s.filter), 1);

  int accepted_shifted = 0;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    EXPECT_TRUE(within(judged[i], DType::bf16, round_to(DType::bf16, right[i]))) << i;
    accepted_shifted += within(judged[i], DType::bf16, round_to(DType::bf16, shifted[i])) ? 1 : 0;
  }
  EXPECT_LE(accepted_shifted, static_cast<int>(judged.size()) / 50);
}

TEST(Conv2d, SubsetsAgreeWithTheWhole) {
  Example s = crooked(DType::f32);
  TextbookRun run(s.program);
  s.fill(run);
  for (const int op : {0, 1, 2}) expect_subsets_agree(run, op, 0);
}

TEST(Conv2d, LandmarksCoverTheCornersOfTheFirstAndTheLastImage) {
  Example s({}, {2, 4, 4, 3}, {3, 1, 1, 3});
  TextbookRun run(s.program);
  const std::vector<std::int64_t> landmarks = run.units(0, 0).landmarks;

  // [2, 4, 4, 3]: corners of image 0, channel 0, and of image 1, channel 2
  for (const std::int64_t corner : {0, 9, 36, 45, 50, 59, 86, 95})
    EXPECT_TRUE(std::find(landmarks.begin(), landmarks.end(), corner) != landmarks.end()) << corner;
}

TEST(Conv2d, CostIsTheSameInAllThreeDirections) {
  // ResNet-50's 3x3 at 14x14: 2 N K P Q C R S = 2 * 256 * 196 * 256 * 9 per image
  Example s({.pad_h = 1, .pad_w = 1}, {1, 14, 14, 256}, {256, 3, 3, 256}, DType::bf16);
  const double flop = 2.0 * 256 * 196 * 256 * 9;
  const double bytes = 2.0 * (2 * 196 * 256 + 256 * 9 * 256);
  for (const int op : {0, 1, 2}) {
    EXPECT_EQ(cost_of(s.program, s.program.op(op)).flop, flop);
    EXPECT_EQ(cost_of(s.program, s.program.op(op)).bytes, bytes);
  }
}

TEST(Conv2d, MisfitsAreErrorsNamingTheTensor) {
  Program p;
  const ValueId x = source(p, "x", DType::f32, {1, 4, 4, 6});
  const ValueId wide = source(p, "wide", DType::f32, {4, 3, 3, 5});
  const ValueId large = source(p, "large", DType::f32, {4, 5, 5, 6});
  const ValueId dy = source(p, "dy", DType::f32, {1, 3, 2, 4});
  const ValueId fitting = source(p, "fitting", DType::f32, {4, 3, 3, 6});

  EXPECT_EQ(program_error([&] { conv2d_forward(p, {}, f32_math, "y", x, wide); }),
            "conv2d: tensor 'filter' has shape [4, 3, 3, 5]; expected 6 channels per group, as x [1, 4, 4, 6] has");
  EXPECT_NE(program_error([&] { conv2d_forward(p, {}, f32_math, "y", x, large); }).find("fits into the padded input"),
            std::string::npos);
  EXPECT_NE(program_error([&] { conv2d_forward(p, {.groups = 4}, f32_math, "y", x, wide); }).find("4 groups"),
            std::string::npos);
  EXPECT_EQ(program_error([&] { conv2d_backward_data(p, {}, f32_math, "dx", dy, fitting, 4, 4); }),
            "conv2d_backward_data: tensor 'dy' has shape [1, 3, 2, 4]; expected [1, 2, 2, 4]");
  EXPECT_NE(program_error([&] { conv2d_forward(p, {.stride_h = 0}, f32_math, "y", x, fitting); }).find("stride_h=0"),
            std::string::npos);
}

}  // namespace conv2d_test
}  // namespace gpubench::testing
