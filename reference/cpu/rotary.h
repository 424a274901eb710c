// Planning of rotary position embedding (reference/ops/rotary.h).
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// f32 or bf16, any strides between heads, tokens and sequences.
[[nodiscard]] Plan plan_rotary(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
