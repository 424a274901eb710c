// Planning of column_sum on own kernels (reference/ops/column_sum.h).
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// x in f32, f16 or bf16, in rows, to any of these types; f64 to f64.
[[nodiscard]] Plan plan_column_sum(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);

}  // namespace gpubench::cuda
