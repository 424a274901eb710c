// Layer normalization and its gradient (reference/ops/layer_norm.h) as cuDNN graphs.
#pragma once

#include <span>

#include "harness/core/program.h"
#include "reference/cuda/cudnn_graph.h"

namespace gpubench::cuda {

/// Rows may have a stride. Throws Unsupported for layouts and statistics that cuDNN cannot be told of.
[[nodiscard]] CudnnGraph layer_norm_forward_graph(const OpCall& call, std::span<const TensorSpec> tensors);
[[nodiscard]] CudnnGraph layer_norm_backward_graph(const OpCall& call, std::span<const TensorSpec> tensors);

}  // namespace gpubench::cuda
