// Reverse-mode differentiation of programs: appends the backward of a forward. Backwards are derived, never written.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "harness/core/program.h"

namespace gpubench {

/// Where differentiation starts: a value and the gradient that flows into it. Without `gradient`, the value is the loss
/// (one element) and its gradient is one.
struct Seed {
  ValueId value;
  std::optional<ValueId> gradient;
};

/// Appends ops that compute the gradients of `wanted` (sources of the program: parameters, inputs) to `program`, in
/// reverse order of the ops present, and returns the gradient of each. Gradients of one value that come from several
/// readers are added; parts of a packed value share one packed gradient. Only what is needed is computed.
/// `gradient_operand`: in what type the backward of a product of 8-bit operands reads gradients (Recipe's member).
/// Throws ProgramError when a wanted value does not influence any seed, or an op on the way has no derivative.
[[nodiscard]] std::map<ValueId, ValueId> differentiate(Program& program, std::span<const Seed> seeds,
                                                       std::span<const ValueId> wanted,
                                                       DType gradient_operand = DType::f8_e5m2);

}  // namespace gpubench
