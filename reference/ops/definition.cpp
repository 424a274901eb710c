// What every definition has unless it says otherwise, and costs of whole programs. The list of ops is definitions.cpp.
#include "reference/ops/definition.h"

#include <string>

namespace gpubench {

void OpDefinition::derivative(Program&, const OpCall& call, GradientTape&) const {
  throw ProgramError(std::string(call.kind.name) + " has no derivative (op '" + call.label + "')");
}

Cost cost_of(const Program& program, const OpCall& call) {
  const std::vector<TensorSpec> inputs = specs_of(program, call.inputs);
  const std::vector<TensorSpec> outputs = specs_of(program, call.outputs);
  return definition(call.kind).cost(call, inputs, outputs);
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
