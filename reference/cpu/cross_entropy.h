// Planning of softmax cross-entropy, its gradient, and both at once (reference/ops/cross_entropy.h).
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// Logits f32 or bf16; rows may have a stride. A label outside the classes gives a loss of NaN, and no one-hot term.
[[nodiscard]] Plan plan_cross_entropy_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                              const CpuContext& context);
[[nodiscard]] Plan plan_cross_entropy_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                               const CpuContext& context);

/// Both at once. A label outside the classes gives a row of NaN.
[[nodiscard]] Plan plan_cross_entropy_forward_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                                       const CpuContext& context);

}  // namespace gpubench::cpu
