#include "reference/ops/layer_norm.h"

#include <vector>

#include "reference/ops/tensor_checks.h"

namespace gpubench {
namespace {

Shape rows_of(const Shape& x) {
  const auto extents = x.extents();
  return Shape(std::vector<std::int64_t>(extents.begin(), extents.end() - 1));
}

void check_data(OpKind op, const LayerNorm& attributes, const TensorSpec& x) {
  expect_float(op, x);
  if (x.shape.rank() < 1 || x.shape[-1] < 1) {
    refuse_shape(op, x.name, x.shape, "", "at least one axis, the last with at least one element");
  }
  if (!(attributes.epsilon >= 0.0)) {
    throw ProgramError(std::string(op.name) + ": epsilon is " + std::to_string(attributes.epsilon) +
                       "; expected 0 or more");
  }
}

}  // namespace

LayerNormForward layer_norm_forward(Program& program, const LayerNorm& attributes, const Math& math, std::string label,
                                    ValueId x, ValueId gamma, ValueId beta) {
  const OpKind op = layer_norm_forward_kind;
  const TensorSpec data = program.spec(x);
  check_data(op, attributes, data);
  expect_shape(op, program.spec(gamma), {data.shape[-1]});
  expect_float(op, program.spec(gamma));
  expect_shape(op, program.spec(beta), {data.shape[-1]});
  expect_dtype(op, program.spec(beta), program.spec(gamma).dtype);

  const DType wide = statistic_type(data.dtype);
  const ValueId y = reserve_output(program, x, label + ".y", data.dtype, data.shape, Role::activation);
  const ValueId mean = reserve_output(program, x, label + ".mean", wide, rows_of(data.shape), Role::statistic);
  const ValueId rstd = reserve_output(program, x, label + ".rstd", wide, rows_of(data.shape), Role::statistic);
  program.append({layer_norm_forward_kind, attributes, math, {x, gamma, beta}, {y, mean, rstd}, std::move(label)});
  return {y, mean, rstd};
}

LayerNormBackward layer_norm_backward(Program& program, const LayerNorm& attributes, const Math& math,
                                      std::string label, ValueId dy, ValueId x, ValueId gamma, ValueId mean,
                                      ValueId rstd) {
  const OpKind op = layer_norm_backward_kind;
  const TensorSpec data = program.spec(x);
  const TensorSpec scale = program.spec(gamma);
  check_data(op, attributes, data);
  expect_shape(op, program.spec(dy), data.shape);
  expect_dtype(op, program.spec(dy), data.dtype);
  expect_shape(op, scale, {data.shape[-1]});
  expect_float(op, scale);
  for (const ValueId statistic : {mean, rstd}) {
    expect_shape(op, program.spec(statistic), rows_of(data.shape));
    expect_dtype(op, program.spec(statistic), statistic_type(data.dtype));
  }

  const ValueId dx = reserve_output(program, x, label + ".dx", data.dtype, data.shape, Role::gradient);
  const ValueId dgamma = reserve_output(program, x, label + ".dgamma", scale.dtype, scale.shape, Role::gradient);
  const ValueId dbeta = reserve_output(program, x, label + ".dbeta", scale.dtype, scale.shape, Role::gradient);
  program.append(
      {layer_norm_backward_kind, attributes, math, {dy, x, gamma, mean, rstd}, {dx, dgamma, dbeta}, std::move(label)});
  return {dx, dgamma, dbeta};
}

}  // namespace gpubench
