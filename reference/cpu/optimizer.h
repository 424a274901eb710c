// Planning of the multi-tensor ops after the backward pass: global norm, clip, AdamW (reference/ops/optimizer.h).
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// Gradients f32 or bf16 each, dense in any order.
[[nodiscard]] Plan plan_gradient_norm(const OpCall& call, std::span<const TensorSpec> tensors,
                                      const CpuContext& context);
[[nodiscard]] Plan plan_clip(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);
/// min(1, limit / (norm + 1e-6)), rounded once; a NaN norm stays NaN.
[[nodiscard]] float clip_factor(float norm, double limit);
/// adamw, and clip_adamw. Weights and moments f32; gradients and copies f32 or bf16.
[[nodiscard]] Plan plan_adamw(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
