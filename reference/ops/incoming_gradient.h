// What derivative rules ask first: the gradient that flows into the output they differentiate.
#pragma once

#include <optional>

#include "reference/ops/gradient_tape.h"

namespace gpubench {

/// The gradient of an output of `call`; empty where none flows. Throws ProgramError when the output is the loss itself:
/// only cross_entropy_forward starts a backward pass by itself, others need a seed gradient.
[[nodiscard]] std::optional<ValueId> incoming_gradient(const OpCall& call, const GradientTape& tape, ValueId output);

}  // namespace gpubench
