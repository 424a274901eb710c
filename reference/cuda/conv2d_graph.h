// Convolution and its two gradients (reference/ops/conv2d.h) as cuDNN graphs.
#pragma once

#include <span>

#include "harness/core/program.h"
#include "reference/cuda/cudnn_graph.h"

namespace gpubench::cuda {

/// For all three kinds of call. Throws Unsupported for layouts and sums that cuDNN cannot be told of.
[[nodiscard]] CudnnGraph conv2d_graph(const OpCall& call, std::span<const TensorSpec> tensors);

}  // namespace gpubench::cuda
