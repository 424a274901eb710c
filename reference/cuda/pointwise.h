// Planning of the ops that treat every element alike, on own kernels (reference/ops/elementwise.h, gelu.h).
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// f64, f32, f16 and bf16; dense in one order, or rows with a stride.
[[nodiscard]] Plan plan_triad(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);
[[nodiscard]] Plan plan_scale(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);
[[nodiscard]] Plan plan_add(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);
/// Between any two of these types.
[[nodiscard]] Plan plan_cast(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);
[[nodiscard]] Plan plan_gelu_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                     const CudaContext& context);
[[nodiscard]] Plan plan_gelu_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                      const CudaContext& context);

}  // namespace gpubench::cuda
