#include "reference/ops/softmax.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

void expect_rows(OpKind op, const TensorSpec& tensor) {
  expect_float(op, tensor);
  if (tensor.shape.rank() < 1 || tensor.shape[-1] < 1)
    refuse_shape(op, tensor.name, tensor.shape, "", "at least one axis, the last with at least one element");
}

}  // namespace

ValueId softmax_forward(Program& program, const Math& math, std::string label, ValueId x) {
  const TensorSpec rows = program.spec(x);
  expect_rows(softmax_forward_kind, rows);
  const ValueId y = reserve_output(program, x, label, rows.dtype, rows.shape, Role::activation);
  program.append({softmax_forward_kind, {}, math, {x}, {y}, std::move(label)});
  return y;
}

ValueId softmax_backward(Program& program, const Math& math, std::string label, ValueId y, ValueId dy) {
  const TensorSpec rows = program.spec(y);
  expect_rows(softmax_backward_kind, rows);
  expect_shape(softmax_backward_kind, program.spec(dy), rows.shape);
  expect_dtype(softmax_backward_kind, program.spec(dy), rows.dtype);
  const ValueId dx = reserve_output(program, y, label, rows.dtype, rows.shape, Role::gradient);
  program.append({softmax_backward_kind, {}, math, {y, dy}, {dx}, std::move(label)});
  return dx;
}

Builders softmax_builders() {
  return {{softmax_backward_kind, in_turn<softmax_backward>}, {softmax_forward_kind, in_turn<softmax_forward>}};
}

}  // namespace gpubench
