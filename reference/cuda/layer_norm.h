// Planning of layer normalization on own kernels, alone and behind a residual connection, and of its gradient
// (reference/ops/layer_norm.h, residual_norm.h).
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Data in f64, f32, f16 or bf16, in rows; parameters of the same type, or f32 with a narrower one; statistics f64 for
/// f64, else f32.
[[nodiscard]] Plan plan_layer_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                           const CudaContext& context);
[[nodiscard]] Plan plan_layer_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                            const CudaContext& context);

/// x, r, sum and y in one of these types.
[[nodiscard]] Plan plan_residual_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                              const CudaContext& context);

}  // namespace gpubench::cuda
