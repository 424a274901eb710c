// Planning of the embedding look-up and its gradient (reference/ops/embedding.h).
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// The table of any type; rows may have a stride. A token outside the table gives a row of NaN (all bits set).
[[nodiscard]] Plan plan_embedding_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                          const CpuContext& context);
/// f32 or bf16, summed in f32. A token outside the table is ignored.
[[nodiscard]] Plan plan_embedding_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                           const CpuContext& context);

}  // namespace gpubench::cpu
