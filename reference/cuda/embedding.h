// Planning of embedding look-up and its gradient on own kernels (reference/ops/embedding.h).
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Any type, in rows.
[[nodiscard]] Plan plan_embedding_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                          const CudaContext& context);
/// f64, f32, f16 and bf16, in rows; the table's gradient has dy's type.
[[nodiscard]] Plan plan_embedding_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                           const CudaContext& context);

}  // namespace gpubench::cuda
