// Planning of the sum over all rows (reference/ops/column_sum.h).
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// f32 or bf16; rows may have a stride.
[[nodiscard]] Plan plan_column_sum(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
