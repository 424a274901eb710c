// Planning of copy, triad, scale, add and cast (reference/ops/elementwise.h). Transpose and reorder are oneDNN's.
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// Any type; f32 and bf16 for the others. Dense in one order, or rows with a stride.
[[nodiscard]] Plan plan_copy(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);
[[nodiscard]] Plan plan_triad(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);
[[nodiscard]] Plan plan_scale(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);
[[nodiscard]] Plan plan_add(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);
[[nodiscard]] Plan plan_cast(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
