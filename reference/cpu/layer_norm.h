// Planning of layer normalization, alone and behind a residual connection, and of its gradient
// (reference/ops/layer_norm.h, residual_norm.h).
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// x, y, dy, dx, gamma and beta f32 or bf16 each; rows may have a stride. Statistics f32.
[[nodiscard]] Plan plan_layer_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                           const CpuContext& context);
[[nodiscard]] Plan plan_layer_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                            const CpuContext& context);
/// x, r, sum and y f32 or bf16 alike, gamma and beta each; all row-major. Statistics f32.
[[nodiscard]] Plan plan_residual_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                              const CpuContext& context);

}  // namespace gpubench::cpu
