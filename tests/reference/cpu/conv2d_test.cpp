// The three passes of conv2d against loops written out in fp64: stride, padding, dilation, groups, f32 and bf16.
#include "reference/ops/conv2d.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>

#include "harness/core/error.h"
#include "tests/reference/cpu/program_run.h"

namespace gpubench {
namespace conv2d_test {

using testing::first_beyond;
using testing::ProgramRun;
using testing::shared_backend;

constexpr double u32 = 1.0 / (1 << 24);

struct Case {
  std::string title;
  std::int64_t n, h, w, c, k, r, s;
  Conv2d conv = {};
};

const Case cases[] = {
    {"pointwise", 2, 5, 7, 16, 24, 1, 1, {}},
    {"one_of_everything", 1, 1, 1, 1, 1, 1, 1, {}},
    {"same_3x3", 2, 9, 11, 16, 32, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
    {"odd_channels", 1, 8, 6, 5, 7, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
    {"strided_stem", 2, 23, 20, 3, 16, 7, 7, {2, 2, 3, 3, 1, 1, 1}},
    {"uneven_stride_and_padding", 1, 13, 10, 8, 8, 3, 2, {3, 2, 0, 1, 1, 1, 1}},
    {"dilated", 1, 12, 14, 16, 16, 3, 3, {1, 1, 2, 3, 2, 3, 1}},
    {"two_groups", 2, 7, 7, 16, 32, 3, 3, {1, 1, 1, 1, 1, 1, 2}},
    {"depthwise", 1, 9, 9, 16, 16, 3, 3, {2, 2, 1, 1, 1, 1, 16}},
    {"strided_pointwise", 1, 8, 8, 32, 64, 1, 1, {2, 2, 0, 0, 1, 1, 1}},
    // A kernel of oneDNN 2.6 for AVX2 writes outside its buffers.
    {"strided_pointwise_of_7_channels", 2, 28, 28, 7, 64, 1, 1, {2, 2, 0, 0, 1, 1, 1}},
    {"strided_pointwise_of_3_channels", 2, 28, 28, 3, 24, 1, 1, {2, 2, 0, 0, 1, 1, 1}},
    // Products of own blocks, below AVX-512.
    {"blocks", 2, 5, 15, 32, 64, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
    {"strided_blocks", 1, 15, 30, 4, 32, 7, 7, {2, 2, 3, 3, 1, 1, 1}},
    {"blocks_without_padding", 3, 6, 19, 33, 32, 3, 4, {}},
    {"blocks_with_rows_of_padding", 1, 2, 17, 32, 32, 2, 3, {3, 1, 4, 1, 1, 1, 1}},
    {"blocks_that_leave_columns_out", 1, 7, 44, 8, 32, 2, 2, {1, 3, 0, 1, 1, 1, 1}},
    {"blocks_with_much_padding", 1, 4, 12, 32, 32, 3, 3, {1, 1, 2, 2, 1, 1, 1}},
};

// Values and how large the summed terms are, of one output.
struct Sums {
  explicit Sums(std::int64_t count)
      : value(static_cast<std::size_t>(count)),
        size(static_cast<std::size_t>(count)),
        terms(static_cast<std::size_t>(count)) {}
  void add(std::int64_t at, double term) {
    value[static_cast<std::size_t>(at)] += term;
    size[static_cast<std::size_t>(at)] += std::abs(term);
    terms[static_cast<std::size_t>(at)] += 1.0;
  }
  // Any order of f32 additions, then one rounding to the stored type.
  [[nodiscard]] std::vector<double> bound(DType stored) const {
    std::vector<double> all(value.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      const double sums = (terms[i] + 2.0) * u32 * size[i];
      all[i] = sums + unit_roundoff(stored) * (std::abs(value[i]) + sums);
    }
    return all;
  }
  std::vector<double> value, size, terms;
};

// Calls visit(index of x, index of filter, index of y) for every multiply-add of the convolution.
template <class Visit>
void for_each_term(const Case& c, const Conv2dExtents& e, const Visit& visit) {
  const std::int64_t c_group = e.c / c.conv.groups, k_group = e.k / c.conv.groups;
  for (std::int64_t n = 0; n < e.n; ++n)
    for (std::int64_t p = 0; p < e.p; ++p)
      for (std::int64_t q = 0; q < e.q; ++q)
        for (std::int64_t k = 0; k < e.k; ++k)
          for (std::int64_t r = 0; r < e.r; ++r)
            for (std::int64_t s = 0; s < e.s; ++s) {
              const std::int64_t h = p * c.conv.stride_h - c.conv.pad_h + r * c.conv.dilation_h;
              const std::int64_t w = q * c.conv.stride_w - c.conv.pad_w + s * c.conv.dilation_w;
              if (h < 0 || h >= e.h || w < 0 || w >= e.w) continue;
              for (std::int64_t ch = 0; ch < c_group; ++ch) {
                visit(((n * e.h + h) * e.w + w) * e.c + k / k_group * c_group + ch,
                      ((k * e.r + r) * e.s + s) * c_group + ch, ((n * e.p + p) * e.q + q) * e.k + k);
              }
            }
}

void expect_right(const ProgramRun& run, ValueId output, const Sums& want) {
  const std::vector<double> got = run.get(output), bound = want.bound(run.program().spec(output).dtype);
  const std::int64_t wrong = first_beyond(got, want.value, bound);
  const auto at = static_cast<std::size_t>(std::max<std::int64_t>(wrong, 0));
  EXPECT_EQ(wrong, -1) << run.program().to_string() << " by " << run.implementation(0) << ": got " << got[at]
                       << ", want " << want.value[at] << " +- " << bound[at];
  EXPECT_TRUE(run.canaries_intact()) << run.program().to_string() << " by " << run.implementation(0);
}

class Conv2dPasses : public ::testing::TestWithParam<std::tuple<Case, DType>> {
 protected:
  const Case& c = std::get<0>(GetParam());
  const DType dtype = std::get<1>(GetParam());
  const Shape x_shape{c.n, c.h, c.w, c.c};
  const Shape filter_shape{c.k, c.r, c.s, c.c / c.conv.groups};
  const Conv2dExtents e = extents_of(c.conv, x_shape, filter_shape);
  const Shape y_shape{e.n, e.p, e.q, e.k};
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
};

TEST_P(Conv2dPasses, ForwardIsTheSumOverTheWindow) {
  Program program;
  const ValueId x = program.add(tensor("x", dtype, x_shape, Role::activation));
  const ValueId filter = program.add(tensor("filter", dtype, filter_shape, Role::parameter));
  const ValueId y = conv2d_forward(program, c.conv, Math{}, "conv", x, filter);
  ProgramRun run(shared_backend(), program);
  run.set_random(x, 1);
  run.set_random(filter, 2, 0.25);
  run.run();
  const std::vector<double> xv = run.get(x), fv = run.get(filter);
  Sums want(y_shape.elements());
  for_each_term(
      c, e, [&](std::int64_t xi, std::int64_t fi, std::int64_t yi) { want.add(yi, xv[index(xi)] * fv[index(fi)]); });
  expect_right(run, y, want);
  const std::vector<std::byte> once = run.bytes_of(y);
  run.run_again();
  EXPECT_EQ(run.bytes_of(y), once) << "a second run gave other bits";
}

TEST_P(Conv2dPasses, BackwardDataCollectsEveryWindowThatReadTheInput) {
  Program program;
  const ValueId dy = program.add(tensor("dy", dtype, y_shape, Role::gradient));
  const ValueId filter = program.add(tensor("filter", dtype, filter_shape, Role::parameter));
  const ValueId dx = conv2d_backward_data(program, c.conv, Math{}, "conv", dy, filter, c.h, c.w);
  ProgramRun run(shared_backend(), program);
  run.set_random(dy, 3);
  run.set_random(filter, 4, 0.25);
  run.run();
  const std::vector<double> dyv = run.get(dy), fv = run.get(filter);
  Sums want(x_shape.elements());
  for_each_term(
      c, e, [&](std::int64_t xi, std::int64_t fi, std::int64_t yi) { want.add(xi, dyv[index(yi)] * fv[index(fi)]); });
  expect_right(run, dx, want);
}

TEST_P(Conv2dPasses, BackwardFilterCollectsEveryPlaceThatUsedTheTap) {
  Program program;
  const ValueId x = program.add(tensor("x", dtype, x_shape, Role::activation));
  const ValueId dy = program.add(tensor("dy", dtype, y_shape, Role::gradient));
  const ValueId dfilter = conv2d_backward_filter(program, c.conv, Math{}, "conv", x, dy, c.r, c.s);
  ProgramRun run(shared_backend(), program);
  run.set_random(x, 5);
  run.set_random(dy, 6, 0.25);
  run.run();
  const std::vector<double> xv = run.get(x), dyv = run.get(dy);
  Sums want(filter_shape.elements());
  for_each_term(
      c, e, [&](std::int64_t xi, std::int64_t fi, std::int64_t yi) { want.add(fi, xv[index(xi)] * dyv[index(yi)]); });
  expect_right(run, dfilter, want);
}

TEST(Conv2dBlocks, TakeWideRowsWhereThereIsNoAvx512) {
  for (const std::int64_t width : {14, 13}) {
    Program program;
    const ValueId x = program.add(tensor("x", DType::f32, {1, 3, width, 8}, Role::activation));
    const ValueId filter = program.add(tensor("filter", DType::f32, {32, 3, 3, 8}, Role::parameter));
    conv2d_forward(program, {1, 1, 1, 1, 1, 1, 1}, Math{}, "conv", x, filter);
    ProgramRun run(shared_backend(), program);
    run.run();
    const bool by_own = width >= 14 && (hwy::SupportedTargets() & HWY_AVX3) == 0;
    EXPECT_EQ(run.implementation(0).starts_with("gpubench:"), by_own) << run.implementation(0);
    // The library's way can be asked for.
    ProgramRun pinned(shared_backend(), program);
    pinned.pin("another");
    try {
      pinned.run();
      FAIL() << "it was planned as " << pinned.implementation(0);
    } catch (const Unsupported& e) {
      EXPECT_NE(std::string(e.what()).find("onednn:"), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).find("gpubench:") != std::string::npos, by_own) << e.what();
    }
  }
}

std::string title_of(const ::testing::TestParamInfo<std::tuple<Case, DType>>& info) {
  return std::get<0>(info.param).title + "_" + std::string(name(std::get<1>(info.param)));
}
INSTANTIATE_TEST_SUITE_P(All, Conv2dPasses,
                         ::testing::Combine(::testing::ValuesIn(cases),
                                            ::testing::Values(DType::f32, DType::bf16, DType::f16)),
                         title_of);

}  // namespace conv2d_test
}  // namespace gpubench
