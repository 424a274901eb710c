#include "reference/ops/gradient_tape.h"

namespace gpubench {

std::optional<ValueId> incoming_gradient(const OpCall& call, const GradientTape& tape, ValueId output) {
  if (tape.is_loss(output)) {
    throw ProgramError(std::string(call.kind.name) + ": op '" + call.label +
                       "' makes the loss; expected cross_entropy_forward, or a seed with a gradient");
  }
  return tape.of(output);
}

std::vector<ValueId> incoming_gradients(const Program& program, const OpCall& call, const GradientTape& tape) {
  std::vector<ValueId> gradients;
  for (const ValueId output : call.outputs) {
    const std::optional<ValueId> gradient = incoming_gradient(call, tape, output);
    if (!gradient) {
      throw ProgramError(std::string(call.kind.name) + ": no gradient flows into '" + program.spec(output).name +
                         "'; expected one on each rank");
    }
    gradients.push_back(*gradient);
  }
  return gradients;
}

}  // namespace gpubench
