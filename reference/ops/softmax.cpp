#include "reference/ops/softmax.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {

ValueId softmax_forward(Program& program, const Math& math, std::string label, ValueId x) {
  expect_float_rows(softmax_forward_kind, program.spec(x));
  const ValueId y = reserve_like(program, x, label, Role::activation);
  program.append({softmax_forward_kind, {}, math, {x}, {y}, std::move(label)});
  return y;
}

ValueId softmax_backward(Program& program, const Math& math, std::string label, ValueId y, ValueId dy) {
  const TensorSpec& rows = program.spec(y);
  expect_float_rows(softmax_backward_kind, rows);
  expect_tensor(program, softmax_backward_kind, dy, rows.shape, rows.dtype);
  const ValueId dx = reserve_like(program, y, label, Role::gradient);
  program.append({softmax_backward_kind, {}, math, {y, dy}, {dx}, std::move(label)});
  return dx;
}

Builders softmax_builders() {
  return {{softmax_backward_kind, in_turn<softmax_backward>}, {softmax_forward_kind, in_turn<softmax_forward>}};
}

}  // namespace gpubench
