// Types that an implementation lacks: exact f32 copies of the operands, the op on those, results rounded once.
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// The implementation's own plan for the call. Where it is Unsupported and operands are of narrower types than f32, its
/// plan for f32 copies of them, named with "+widen" behind. Throws the first plan's Unsupported where there is neither.
/// A pinned name says which of both it is.
[[nodiscard]] Plan plan_or_widen(const OpImplementation& implementation, const OpCall& call,
                                 std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
