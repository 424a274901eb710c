#include "reference/ops/count_labels.h"

#include <utility>

#include "reference/ops/builder_arguments.h"
#include "reference/ops/tensor_checks.h"

namespace gpubench {

ValueId count_labels(Program& program, const CountLabels& attributes, const Math& math, std::string label,
                     ValueId labels, DType wide) {
  constexpr OpKind op = count_labels_kind;
  expect_dtype(op, program.spec(labels), DType::i32);
  if (attributes.parts < 1)
    throw ProgramError("count_labels: parts = " + std::to_string(attributes.parts) + "; expected at least 1");
  const ValueId y = reserve_output(program, labels, label, wide, {1}, Role::scalar);
  program.append({op, attributes, math, {labels}, {y}, std::move(label)});
  return y;
}

Builders count_labels_builders() { return {{count_labels_kind, in_turn<count_labels>}}; }

}  // namespace gpubench
