// What every definition has unless it says otherwise, and costs of whole programs. The list of ops is definitions.cpp.
#include "reference/ops/definition.h"

#include <string>

namespace gpubench {

void OpDefinition::derivative(Program&, const OpCall& call, GradientTape&) const {
  throw ProgramError(std::string(call.kind.name) + " has no derivative (op '" + call.label + "')");
}

double bytes_moved(std::span<const TensorSpec> tensors) {
  double bytes = 0.0;
  for (const TensorSpec& tensor : tensors) bytes += bytes_moved(tensor);
  return bytes;
}

Cost cost_of(const Program& program, const OpCall& call) {
  return definition(call.kind).cost({call, specs_of(program, call.inputs), specs_of(program, call.outputs)});
}

Cost cost_of(const Program& program) {
  Cost total;
  for (const OpCall& call : program.ops()) {
    if (call.phase != Phase::timed) continue;
    const Cost cost = cost_of(program, call);
    total.flop += cost.flop;
    total.bytes += cost.bytes;
    total.message_bytes += cost.message_bytes;
  }
  return total;
}

}  // namespace gpubench
