// Attention (reference/ops/attention.h) as cuDNN graphs of single operations, in the order in which cuDNN's fused
// attention engines recognize them. Scores, log-sum-exp and sums are f32; probabilities are rounded to the tensors'
// type before they are multiplied with values.
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

}  // namespace gpubench::cuda
