#include "reference/ops/residual_norm.h"

#include <vector>

#include "reference/ops/tensor_checks.h"

namespace gpubench {

ResidualNormForward residual_norm_forward(Program& program, const ResidualNorm& attributes, const Math& math,
                                          std::string label, ValueId x, ValueId r, ValueId gamma, ValueId beta) {
  const OpKind op = residual_norm_forward_kind;
  const TensorSpec data = program.spec(x);
  const DType parameters = program.spec(gamma).dtype;
  expect_float(op, data);
  if (data.shape.rank() < 1 || data.shape[-1] < 1) {
    refuse_shape(op, data.name, data.shape, "", "at least one axis, the last with at least one element");
  }
  expect_shape(op, program.spec(r), data.shape);
  expect_dtype(op, program.spec(r), data.dtype);
  expect_shape(op, program.spec(gamma), {data.shape[-1]});
  expect_float(op, program.spec(gamma));
  expect_shape(op, program.spec(beta), {data.shape[-1]});
  expect_dtype(op, program.spec(beta), parameters);
  if (!(attributes.epsilon >= 0.0)) {
    throw ProgramError(std::string(op.name) + ": epsilon is " + std::to_string(attributes.epsilon) +
                       "; expected 0 or more");
  }

  const auto extents = data.shape.extents();
  const Shape rows(std::vector<std::int64_t>(extents.begin(), extents.end() - 1));
  const DType wide = statistic_type(data.dtype);
  const ValueId sum =
      reserve_output(program, x, label + ".sum", data.dtype, data.shape, role_of_result(program, {x, r}));
  const ValueId y = reserve_output(program, x, label + ".y", data.dtype, data.shape, Role::activation);
  const ValueId mean = reserve_output(program, x, label + ".mean", wide, rows, Role::statistic);
  const ValueId rstd = reserve_output(program, x, label + ".rstd", wide, rows, Role::statistic);
  program.append({op, attributes, math, {x, r, gamma, beta}, {sum, y, mean, rstd}, std::move(label)});
  return {sum, y, mean, rstd};
}

}  // namespace gpubench
