// Reverse-mode differentiation of programs.
#pragma once

#include <map>
#include <optional>
#include <span>

#include "harness/core/program.h"

namespace gpubench {

/// Where differentiation starts. Without `gradient`, the value is the loss (one element) with gradient 1.
struct Seed {
  ValueId value;
  std::optional<ValueId> gradient;
};

/// Appends ops that compute the gradients of `wanted` (sources: parameters, inputs), in reverse order of the program's
/// ops; returns the gradients by value. Those from several readers of a value are added; parts of a packed value share
/// one packed gradient. `gradient_operand`: Recipe::gradient_operand. Throws ProgramError if a wanted value does not
/// influence any seed, or an op on the path has no derivative.
[[nodiscard]] std::map<ValueId, ValueId> differentiate(Program& program, std::span<const Seed> seeds,
                                                       std::span<const ValueId> wanted,
                                                       DType gradient_operand = DType::f8_e5m2);

}  // namespace gpubench
