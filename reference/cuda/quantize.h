// Planning of quantize on own kernels (reference/ops/quantize.h).
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// From f32, f16 or bf16, in rows. Values in another order than x's go by way of the workspace.
[[nodiscard]] Plan plan_quantize(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);

}  // namespace gpubench::cuda
