// Ops that treat every element alike, as launches.
#pragma once

#include <string_view>

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

inline constexpr int most_pointwise_inputs = 3;
inline constexpr int most_pointwise_outputs = 2;

/// Up to three tensors in, up to two out, of one shape, but for repeated inputs: as many as the op has. All have the
/// type `from`, except that cast's result has the type `to`. Outputs may be inputs.
struct PointwiseArgs {
  Element from = Element::f32;
  Element to = Element::f32;
  const void* in[most_pointwise_inputs] = {};
  void* out[most_pointwise_outputs] = {};
  std::int64_t rows = 1, columns = 0;
  std::int64_t in_stride[most_pointwise_inputs] = {};
  std::int64_t out_stride[most_pointwise_outputs] = {};
  std::int64_t repeats[most_pointwise_inputs] = {1, 1, 1};  ///< how many rows one of the input's is for
  double factor = 1.0;
};

/// A pointwise op's kernels, for any types.
using PointwiseLaunch = void (*)(const PointwiseArgs& args, cudaStream_t stream);

/// By the op's name (reference/ops/pointwise.h); GELU's form is part of it: "gelu_forward erf". Null where there is
/// none.
[[nodiscard]] PointwiseLaunch pointwise_launch(std::string_view op);

}  // namespace gpubench::cuda
