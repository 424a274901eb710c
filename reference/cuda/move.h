// Planning of copy, transpose and reorder on own kernels (reference/ops/elementwise.h).
#pragma once

#include <span>

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/move.h"

namespace gpubench::cuda {

/// What moves x's elements to where y's layout has them, without addresses. Throws Unsupported for blocked layouts and
/// for more than 8 axes.
[[nodiscard]] MoveArgs move_of(const OpCall& call, const TensorSpec& x, const TensorSpec& y);

/// Any type; any strides, without blocks. At most 8 axes remain after neighbouring ones are joined.
[[nodiscard]] Plan plan_copy(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);
[[nodiscard]] Plan plan_reorder(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);
[[nodiscard]] Plan plan_transpose(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);

}  // namespace gpubench::cuda
