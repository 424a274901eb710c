// What derivative rules ask first: the gradient that flows into the output they differentiate.
#pragma once

#include <optional>
#include <vector>

#include "reference/ops/gradient_tape.h"

namespace gpubench {

/// The gradient of an output of `call`; empty where none flows. Throws ProgramError when the output is the loss itself:
/// only cross_entropy_forward starts a backward pass by itself, others need a seed gradient.
[[nodiscard]] std::optional<ValueId> incoming_gradient(const OpCall& call, const GradientTape& tape, ValueId output);

/// The gradients of all outputs of a collective, which has to bring every rank's input its own. Throws ProgramError as
/// above, and naming an output that none flows into.
[[nodiscard]] std::vector<ValueId> incoming_gradients(const Program& program, const OpCall& call,
                                                      const GradientTape& tape);

}  // namespace gpubench
