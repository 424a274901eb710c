// Softmax over rows, and its gradient, as launches.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// All of one type, strides in elements. Forward: to = softmax(x). Backward: to = x (dy - sum x dy), x the forward's
/// result.
struct SoftmaxArgs {
  Element data = Element::f32;
  const void *x = nullptr, *dy = nullptr;
  void* to = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t x_stride = 0, dy_stride = 0, to_stride = 0;
};

void launch_softmax_forward(const SoftmaxArgs& args, cudaStream_t stream);
void launch_softmax_backward(const SoftmaxArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
