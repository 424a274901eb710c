// Planning of softmax cross-entropy on own kernels (reference/ops/cross_entropy.h).
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Logits in f64, f32, f16 or bf16, in rows; loss and log-sum-exp f64 for f64, else f32.
[[nodiscard]] Plan plan_cross_entropy_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                              const CudaContext& context);
/// In place or not; dlogits has the logits' type.
[[nodiscard]] Plan plan_cross_entropy_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                               const CudaContext& context);

/// Both at once.
[[nodiscard]] Plan plan_cross_entropy_forward_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                                       const CudaContext& context);

}  // namespace gpubench::cuda
