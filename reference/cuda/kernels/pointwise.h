// Ops that treat every element alike, as launches.
#pragma once

#include "reference/cuda/kernels/element.h"
#include "reference/cuda/kernels/stream.h"

namespace gpubench::cuda {

enum class PointwiseOp : std::uint8_t {
  cast,       ///< y = a, rounded once to y's type
  scale,      ///< y = factor a
  add,        ///< y = a + b
  triad,      ///< y = a + factor b
  gelu_tanh,  ///< y = gelu(a)
  gelu_erf,
  gelu_tanh_backward,  ///< y = b gelu'(a)
  gelu_erf_backward
};

/// Tensors of one shape. a, b and y have the type `from`, except that cast's y has the type `to`. y may be a or b.
struct PointwiseArgs {
  PointwiseOp op = PointwiseOp::cast;
  Element from = Element::f32;
  Element to = Element::f32;
  const void* a = nullptr;
  const void* b = nullptr;  ///< ops of two inputs
  void* y = nullptr;
  std::int64_t rows = 1, columns = 0;
  std::int64_t a_stride = 0, b_stride = 0, y_stride = 0;
  double factor = 1.0;
};

void launch_pointwise(const PointwiseArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
