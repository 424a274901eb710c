// Planning of attention (reference/ops/attention.h), forward and backward, on cuDNN's fused engines.
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// f16 and bf16 (f32 only as TF32, and forward only); q, k, v, o and their gradients may be strided parts of packed
/// storages; head sizes that are multiples of 8. Backward: with `context.options.deterministic`, dq is summed up
/// without atomic additions, for which scores of all heads are kept: a workspace of b hq s^2 elements. Throws
/// Unsupported with cuDNN's words.
[[nodiscard]] Plan plan_attention_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                          const CudaContext& context);
[[nodiscard]] Plan plan_attention_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                           const CudaContext& context);

}  // namespace gpubench::cuda
