// Ops as cuDNN graphs: attention and convolution. plan_graph() makes plans of them (graph_plan.h).
#pragma once

#include <span>

#include "harness/core/program.h"
#include "reference/cuda/cudnn_graph.h"

namespace gpubench::cuda {

/// q, k, v may be strided parts of a packed storage. Throws Unsupported.
[[nodiscard]] CudnnGraph attention_forward_graph(const OpCall& call, std::span<const TensorSpec> tensors);

/// `direct_dq`: dq is summed up within thread blocks; else in an f32 scratch tensor, by atomic additions, which is
/// faster and gives other bits each time.
[[nodiscard]] CudnnGraph attention_backward_graph(const OpCall& call, std::span<const TensorSpec> tensors,
                                                  bool direct_dq);

/// For all three kinds of call. Throws Unsupported for layouts and sums that cuDNN cannot be told of.
[[nodiscard]] CudnnGraph conv2d_graph(const OpCall& call, std::span<const TensorSpec> tensors);

}  // namespace gpubench::cuda
