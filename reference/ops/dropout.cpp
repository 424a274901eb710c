#include "reference/ops/dropout.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {

ValueId dropout(Program& program, const Dropout& attributes, const Math& math, std::string label, ValueId x,
                const MaskSource& source, const std::optional<ValueId>& into) {
  const TensorSpec data = program.spec(x);
  expect_float(dropout_kind, data);
  for (const ValueId words : {source.seed, source.offset}) expect_tensor(program, dropout_kind, words, {2}, DType::i32);
  if (!(attributes.p >= 0.0 && attributes.p < 1.0)) {
    throw ProgramError("dropout: p is " + std::to_string(attributes.p) + "; expected at least 0 and less than 1");
  }
  const ValueId y =
      output_or_reserve(program, dropout_kind, into, x, label, data.dtype, data.shape, role_of_result(program, {x}));
  expect_dtype(dropout_kind, program.spec(y), data.dtype);
  program.append({dropout_kind, attributes, math, {x, source.seed, source.offset}, {y}, std::move(label)});
  return y;
}

std::set<std::string, std::less<>> mask_offsets(const Program& step, std::string_view transform) {
  std::set<std::string, std::less<>> names;
  for (const OpCall& call : step.ops()) {
    if (call.kind != dropout_kind) continue;
    const Value& offset = step.value(step.values_in(step.value(call.input("offset")).storage).front());
    if (!offset.source || offset.spec.fill.kind == Fill::Kind::constant || offset.spec.placement.spread.empty()) {
      throw ProgramError(std::string(transform) + ": '" + offset.spec.name + "', the offset of dropout '" + call.label +
                         "', would be the same for all ranks or micro-batches; expected a source that is part of the "
                         "batch, not a constant");
    }
    names.emplace(offset.spec.global_name());
  }
  return names;
}

Builders dropout_builders() { return {{dropout_kind, in_turn<dropout>}}; }

}  // namespace gpubench
