// The three passes of conv2d against the textbook: stride, padding, dilation, groups, every type.
#include "reference/ops/conv2d.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include "tests/reference/cpu/textbook_judge.h"

namespace gpubench {
namespace conv2d_test {

using testing::ProgramRun;
using testing::shared_backend;

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
    // Own block products, below AVX-512.
    {"blocks", 2, 5, 15, 32, 64, 3, 3, {1, 1, 1, 1, 1, 1, 1}},
    {"strided_blocks", 1, 15, 30, 4, 32, 7, 7, {2, 2, 3, 3, 1, 1, 1}},
    {"blocks_without_padding", 3, 6, 19, 33, 32, 3, 4, {}},
    {"blocks_with_rows_of_padding", 1, 2, 17, 32, 32, 2, 3, {3, 1, 4, 1, 1, 1, 1}},
    {"blocks_that_leave_columns_out", 1, 7, 44, 8, 32, 2, 2, {1, 3, 0, 1, 1, 1, 1}},
    {"blocks_with_much_padding", 1, 4, 12, 32, 32, 3, 3, {1, 1, 2, 2, 1, 1, 1}},
};

class Conv2dPasses : public ::testing::TestWithParam<std::tuple<Case, DType>> {};

TEST_P(Conv2dPasses, LieWithinTheirBoundsBothWays) {
  const auto& [c, dtype] = GetParam();
  const Shape image{c.n, c.h, c.w, c.c}, weights{c.k, c.r, c.s, c.c / c.conv.groups};
  const Conv2dExtents e = extents_of(c.conv, image, weights);
  Program program;
  const ValueId x = program.add(tensor("x", dtype, image, Role::activation));
  const ValueId filter = program.add(tensor("filter", dtype, weights, Role::parameter));
  const ValueId dy = program.add(tensor("dy", dtype, {e.n, e.p, e.q, e.k}, Role::gradient));
  (void)conv2d_forward(program, c.conv, Math{}, "y", x, filter);
  (void)conv2d_backward_data(program, c.conv, Math{}, "dx", dy, filter, c.h, c.w);
  (void)conv2d_backward_filter(program, c.conv, Math{}, "dfilter", x, dy, c.r, c.s);
  ProgramRun run(shared_backend(), program);
  run.set_random(x, 1);
  run.set_random(filter, 2, 0.25);
  run.set_random(dy, 3, 0.25);

  EXPECT_EQ(testing::run_and_judge(run), "")
      << run.implementation(0) << ", " << run.implementation(1) << ", " << run.implementation(2);
}

TEST(Conv2dBlocks, TakeWideRowsWhereThereIsNoAvx512) {
  for (const std::int64_t width : {14, 13}) {
    Program program;
    const ValueId x = program.add(tensor("x", DType::f32, {1, 3, width, 8}, Role::activation));
    const ValueId filter = program.add(tensor("filter", DType::f32, {32, 3, 3, 8}, Role::parameter));
    conv2d_forward(program, {1, 1, 1, 1, 1, 1, 1}, Math{}, "conv", x, filter);
    ProgramRun run(shared_backend(), program);
    run.run();
    const bool own_refusal = width >= 14 && (hwy::SupportedTargets() & HWY_AVX3) == 0;
    EXPECT_EQ(run.implementation(0).starts_with("gpubench:"), own_refusal) << run.implementation(0);
    // oneDNN's implementation can be pinned.
    const std::string ways = testing::refusal(shared_backend(), program, "another");
    EXPECT_NE(ways.find("onednn:"), std::string::npos) << ways;
    EXPECT_EQ(ways.find("gpubench:") != std::string::npos, own_refusal) << ways;
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
