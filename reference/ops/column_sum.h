// Sum over all rows: the gradient of a bias.
#pragma once

#include <optional>
#include <string>

#include "harness/core/program.h"

namespace gpubench {

/// x: [..., n] -> y: [n], y[j] = sum over all leading indices of x[..., j].
inline constexpr OpKind column_sum_kind{"column_sum", "x", "y"};

/// `into`: a reserved value of another type than x (f32 bias gradients of bf16 activations).
ValueId column_sum(Program& program, const Math& math, std::string label, ValueId x, std::optional<ValueId> into = {});

}  // namespace gpubench
