// Planning of rotary position embedding on own kernels (reference/ops/rotary.h).
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// f64, f32, f16 and bf16; any strides between heads, tokens and sequences.
[[nodiscard]] Plan plan_rotary(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);

}  // namespace gpubench::cuda
