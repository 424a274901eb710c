#include "reference/ops/builders.h"

#include <algorithm>
#include <string>

namespace gpubench {

const OpCall& append_call(Program& program, const OpCall& call, std::span<const TensorSpec> outputs) {
  const std::string op(call.kind.name);
  const Builder* builder = nullptr;
  for (const Builders& file : builder_files()) {
    const auto found = std::ranges::find(file, call.kind, &Builder::kind);
    if (found != file.end()) builder = &*found;
  }
  if (builder == nullptr) throw ProgramError(op + " has tensors of several ranks; expected an op of one rank");
  expect_operands(call.kind, call.kind.inputs, call.attributes, call.inputs.size(), "inputs", call.label);
  builder->append({program, call, outputs});
  const OpCall& made = program.ops().back();
  if (!(made.kind == call.kind) || !(made.attributes == call.attributes)) {
    throw ProgramError(op + ": attributes {" + call.attributes.to_string() + "} with these operands; expected " +
                       std::string(made.kind.name) + " {" + made.attributes.to_string() + "}");
  }
  if (made.outputs.size() != outputs.size()) {
    throw ProgramError(op + ": " + std::to_string(outputs.size()) + " outputs; expected " +
                       std::to_string(made.outputs.size()));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    expect_shape(call.kind, outputs[i], program.spec(made.outputs[i]).shape);
    expect_dtype(call.kind, outputs[i], program.spec(made.outputs[i]).dtype);
  }
  return made;
}

}  // namespace gpubench
