// transpose and reorder: the same elements in another place.
#pragma once

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// oneDNN's reorder where both layouts are plain strides and it knows the type, else our own for any two layouts.
[[nodiscard]] Plan plan_transpose(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);
[[nodiscard]] Plan plan_reorder(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
