// What copy, transpose and reorder are on the device, and quantize in part: elements moved from one layout to another.
#pragma once

#include <span>

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/move.h"

namespace gpubench::cuda {

/// What moves x's elements to where y's layout has them, without addresses. Throws Unsupported for blocked layouts and
/// for more than 8 axes.
[[nodiscard]] MoveArgs move_of(const OpCall& call, const TensorSpec& x, const TensorSpec& y);

/// The plan of a move on the device.
[[nodiscard]] Plan plan_move(const MoveArgs& args, const OpCall& call, const CudaContext& context);

}  // namespace gpubench::cuda
