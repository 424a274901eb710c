// Planning of gradient norm, clip and AdamW on own kernels (reference/ops/optimizer.h). One launch serves all tensors.
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Dense gradients in f64, f32, f16 or bf16, which may differ in type; the norm is f32, or f64.
[[nodiscard]] Plan plan_gradient_norm(const OpCall& call, std::span<const TensorSpec> tensors,
                                      const CudaContext& context);
[[nodiscard]] Plan plan_clip(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);
/// adamw, and clip_adamw. Masters and moments in f32, gradients and copies in f32, f16 or bf16; or all of them in f64.
/// Dense, in one order per parameter. The learning rate is f32, or f64 with the rest.
[[nodiscard]] Plan plan_adamw(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);

}  // namespace gpubench::cuda
