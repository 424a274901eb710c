#include "reference/ops/gelu.h"

#include <utility>

#include "reference/ops/tensor_checks.h"

namespace gpubench {

ValueId gelu_forward(Program& program, const Gelu& attributes, const Math& math, std::string label, ValueId x) {
  const TensorSpec spec = program.spec(x);
  expect_float(gelu_forward_kind, spec);
  const ValueId y = reserve_output(program, x, label, spec.dtype, spec.shape, Role::activation);
  program.append({gelu_forward_kind, attributes, math, {x}, {y}, std::move(label)});
  return y;
}

ValueId gelu_backward(Program& program, const Gelu& attributes, const Math& math, std::string label, ValueId x,
                      ValueId dy) {
  const TensorSpec spec = program.spec(x);
  expect_float(gelu_backward_kind, spec);
  expect_shape(gelu_backward_kind, program.spec(dy), spec.shape);
  expect_float(gelu_backward_kind, program.spec(dy));
  const ValueId dx = reserve_output(program, x, label, spec.dtype, spec.shape, Role::gradient);
  program.append({gelu_backward_kind, attributes, math, {x, dy}, {dx}, std::move(label)});
  return dx;
}

}  // namespace gpubench
