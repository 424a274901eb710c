#include "reference/ops/column_sum.h"

#include <utility>

#include "reference/ops/tensor_checks.h"

namespace gpubench {

ValueId column_sum(Program& program, const Math& math, std::string label, ValueId x, std::optional<ValueId> into) {
  const TensorSpec spec = program.spec(x);
  expect_float(column_sum_kind, spec);
  if (spec.shape.rank() < 1) refuse_shape(column_sum_kind, spec.name, spec.shape, "", "[..., n]");
  const ValueId y = output_or_reserve(program, column_sum_kind, into, x, label, spec.dtype, Shape{spec.shape[-1]},
                                      role_of_result(program, {x}));
  program.append({column_sum_kind, {}, math, {x}, {y}, std::move(label)});
  return y;
}

}  // namespace gpubench
