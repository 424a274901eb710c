// Types that an implementation lacks: exact f32 copies of the operands, the op on those, results rounded once.
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// The implementation's own plan for the call. If that is Unsupported and operands are narrower than f32, its plan for
/// f32 copies of them; the name of that plan ends in "+widen". Throws the first plan's Unsupported if both are. A
/// pinned name with that suffix selects the plan for copies, one without it the own plan.
[[nodiscard]] Plan plan_or_widen(const OpImplementation& implementation, const OpCall& call,
                                 std::span<const TensorSpec> tensors, const CpuContext& context);

}  // namespace gpubench::cpu
