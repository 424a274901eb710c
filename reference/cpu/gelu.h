// Planning of GELU and its derivative (reference/ops/gelu.h).
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// f32 or bf16, dense in one order or rows with a stride.
[[nodiscard]] Plan plan_gelu_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                     const CpuContext& context);
[[nodiscard]] Plan plan_gelu_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                      const CpuContext& context);

}  // namespace gpubench::cpu
