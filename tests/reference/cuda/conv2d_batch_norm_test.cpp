// A convolution with its batch norm on the CUDA backend, with an emulated convolution, against the textbook.
#include "reference/ops/conv2d_batch_norm.h"

#include <gtest/gtest.h>

#include "tests/reference/cuda/emulated_judge.h"

namespace gpubench {
namespace cuda_conv2d_batch_norm_test {

struct ConvolvedNorm {
  Program program;
  std::vector<ValueId> sources;
};

ConvolvedNorm convolved_norm(DType type, const Shape& x, const Shape& filter, const Conv2dBatchNorm& attributes) {
  ConvolvedNorm made;
  const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
  const auto add = [&](const char* name, DType dtype, const Shape& shape) {
    return made.sources.emplace_back(made.program.add(tensor(name, dtype, shape, Role::input)));
  };
  const Conv2dExtents e = extents_of(attributes.conv, x, filter);
  const ValueId data = add("x", type, x), weights = add("filter", type, filter);
  const ValueId gamma = add("gamma", wide, {e.k}), beta = add("beta", wide, {e.k});
  const ValueId mean = add("running_mean", wide, {e.k}), var = add("running_var", wide, {e.k});
  std::optional<ValueId> r;
  if (attributes.r) r = add("r", type, {e.n, e.p, e.q, e.k});
  (void)conv2d_batch_norm_forward(made.program, attributes, {.accumulate = wide}, "op", data, weights,
                                  {gamma, beta, mean, var}, r);
  return made;
}

/// Numbers in [-1/2, 1).
void fill(testing::ProgramRun& run, const ConvolvedNorm& made) {
  std::uint32_t state = 5;
  for (const ValueId id : made.sources) {
    std::vector<double> values(static_cast<std::size_t>(made.program.spec(id).shape.elements()));
    for (double& value : values) {
      state = state * 1664525U + 1013904223U;
      value = static_cast<double>(state >> 8U) * 1.5 * 0x1p-24 - 0.5;
    }
    run.set(id, values);
  }
}

std::vector<ConvolvedNorm> programs(DType type) {
  const Conv2d same{.pad_h = 1, .pad_w = 1}, strided{.stride_h = 2, .stride_w = 2};
  std::vector<ConvolvedNorm> all;
  all.push_back(convolved_norm(type, {2, 5, 6, 3}, {24, 3, 3, 3}, {.conv = same, .norm = {.momentum = 0.25}}));
  all.push_back(convolved_norm(type, {3, 7, 7, 5}, {67, 1, 1, 5}, {.conv = strided, .relu = true}));
  all.push_back(convolved_norm(type, {2, 4, 4, 4}, {264, 1, 1, 4}, {.relu = true, .r = true}));
  return all;
}

TEST(CudaConv2dBatchNorm, StatisticsOfSumsAndOfTheProductAreBothWithinTheBound) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    for (const ConvolvedNorm& made : programs(type)) {
      for (const char* how : {"emulated+gpubench:sm90:normalize", "emulated+gpubench:sm90:batch_norm"}) {
        EXPECT_EQ(testing::run_in_every_order(made.program, [&](testing::ProgramRun& run) { fill(run, made); },
                                              {.pinned = how}),
                  "")
            << name(type) << " " << how;
        EXPECT_EQ(testing::last_candidates(), std::vector<std::string>{how});
      }
    }
  }
}

TEST(CudaConv2dBatchNorm, WhereNothingSumsStatisticsAreTakenOfTheProductAndTheNameSaysSo) {
  for (const ConvolvedNorm& made : programs(DType::f64)) {
    EXPECT_EQ(testing::run_in_every_order(made.program, [&](testing::ProgramRun& run) { fill(run, made); }), "");
    EXPECT_EQ(testing::last_candidates(), std::vector<std::string>{"emulated+gpubench:sm90:batch_norm"});
  }
}

}  // namespace cuda_conv2d_batch_norm_test
}  // namespace gpubench
