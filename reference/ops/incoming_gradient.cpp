#include "reference/ops/incoming_gradient.h"

namespace gpubench {

std::optional<ValueId> incoming_gradient(const OpCall& call, const GradientTape& tape, ValueId output) {
  if (tape.is_loss(output)) {
    throw ProgramError(std::string(call.kind.name) + ": op '" + call.label +
                       "' makes the loss; expected cross_entropy_forward, or a seed with a gradient");
  }
  return tape.of(output);
}

}  // namespace gpubench
