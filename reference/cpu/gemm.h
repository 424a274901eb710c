// gemm on oneDNN's matmul; the GELU epilogues, of which training needs both sides, by a pass of our own behind it.
#pragma once

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// reference/ops/gemm.h, in f32 and bf16 with f32 sums. Throws Unsupported with oneDNN's words for what it lacks.
[[nodiscard]] Plan plan_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
