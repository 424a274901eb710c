#include "reference/ops/norm.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

Shape rows_of(const Shape& x) {
  const auto extents = x.extents();
  return Shape(std::vector<std::int64_t>(extents.begin(), extents.end() - 1));
}

/// Requires parameters [n] of one type, statistics [...], and gradients like x.
void check(const Program& program, OpKind op, const Norm& attributes, ValueId x, std::initializer_list<ValueId> like_x,
           std::initializer_list<ValueId> parameters, std::initializer_list<ValueId> statistics) {
  const TensorSpec& data = program.spec(x);
  expect_float_rows(op, data);
  if (!(attributes.epsilon >= 0.0)) {
    throw ProgramError(std::string(op.name) + ": epsilon is " + std::to_string(attributes.epsilon) +
                       "; expected 0 or more");
  }
  for (const ValueId id : like_x) expect_tensor(program, op, id, data.shape, data.dtype);
  for (const ValueId id : parameters) {
    expect_float_tensor(program, op, id, {data.shape[-1]});
    expect_dtype(op, program.spec(id), program.spec(*parameters.begin()).dtype);
  }
  for (const ValueId id : statistics) expect_tensor(program, op, id, rows_of(data.shape), statistic_type(data.dtype));
}

ValueId reserve_statistic(Program& program, ValueId x, const std::string& name) {
  const TensorSpec data = program.spec(x);
  return reserve_output(program, x, name, statistic_type(data.dtype), rows_of(data.shape), Role::statistic);
}
ValueId reserve_gradient(Program& program, ValueId x, ValueId parameter, const std::string& name) {
  const TensorSpec like = program.spec(parameter);
  return reserve_output(program, x, name, like.dtype, like.shape, Role::gradient);
}

}  // namespace

RmsNorm row_norm_of(const OpCall& call) {
  const bool centered = call.kind != rms_norm_forward_kind && call.kind != rms_norm_backward_kind;
  return centered ? RmsNorm{call.attributes.as<Norm>()} : call.attributes.as<RmsNorm>();
}

LayerNormForward layer_norm_forward(Program& program, const LayerNorm& attributes, const Math& math, std::string label,
                                    ValueId x, ValueId gamma, ValueId beta) {
  check(program, layer_norm_forward_kind, attributes, x, {}, {gamma, beta}, {});
  const LayerNormForward out{reserve_like(program, x, label + ".y", Role::activation),
                             reserve_statistic(program, x, label + ".mean"),
                             reserve_statistic(program, x, label + ".rstd")};
  program.append(
      {layer_norm_forward_kind, attributes, math, {x, gamma, beta}, {out.y, out.mean, out.rstd}, std::move(label)});
  return out;
}

LayerNormBackward layer_norm_backward(Program& program, const LayerNorm& attributes, const Math& math,
                                      std::string label, ValueId dy, ValueId x, ValueId gamma, ValueId mean,
                                      ValueId rstd, std::optional<ValueId> dr) {
  const OpKind kind = dr ? residual_norm_backward_kind : layer_norm_backward_kind;
  check(program, kind, attributes, x, {dy, dr.value_or(dy)}, {gamma}, {mean, rstd});
  const LayerNormBackward out{reserve_like(program, x, label + ".dx", Role::gradient),
                              reserve_gradient(program, x, gamma, label + ".dgamma"),
                              reserve_gradient(program, x, gamma, label + ".dbeta")};
  std::vector<ValueId> inputs{dy, x, gamma, mean, rstd};
  if (dr) inputs.push_back(*dr);
  program.append({kind, attributes, math, std::move(inputs), {out.dx, out.dgamma, out.dbeta}, std::move(label)});
  return out;
}

ResidualNormForward residual_norm_forward(Program& program, const ResidualNorm& attributes, const Math& math,
                                          std::string label, ValueId x, ValueId r, ValueId gamma, ValueId beta) {
  check(program, residual_norm_forward_kind, attributes, x, {r}, {gamma, beta}, {});
  const ResidualNormForward out{reserve_like(program, x, label + ".sum", role_of_result(program, {x, r})),
                                reserve_like(program, x, label + ".y", Role::activation),
                                reserve_statistic(program, x, label + ".mean"),
                                reserve_statistic(program, x, label + ".rstd")};
  program.append({residual_norm_forward_kind,
                  attributes,
                  math,
                  {x, r, gamma, beta},
                  {out.sum, out.y, out.mean, out.rstd},
                  std::move(label)});
  return out;
}

RmsNormForward rms_norm_forward(Program& program, const RmsNorm& attributes, const Math& math, std::string label,
                                ValueId x, ValueId gamma) {
  check(program, rms_norm_forward_kind, attributes.norm, x, {}, {gamma}, {});
  const RmsNormForward out{reserve_like(program, x, label + ".y", Role::activation),
                           reserve_statistic(program, x, label + ".rstd")};
  program.append({rms_norm_forward_kind, attributes, math, {x, gamma}, {out.y, out.rstd}, std::move(label)});
  return out;
}

RmsNormBackward rms_norm_backward(Program& program, const RmsNorm& attributes, const Math& math, std::string label,
                                  ValueId dy, ValueId x, ValueId gamma, ValueId rstd) {
  check(program, rms_norm_backward_kind, attributes.norm, x, {dy}, {gamma}, {rstd});
  const RmsNormBackward out{reserve_like(program, x, label + ".dx", Role::gradient),
                            reserve_gradient(program, x, gamma, label + ".dgamma")};
  program.append(
      {rms_norm_backward_kind, attributes, math, {dy, x, gamma, rstd}, {out.dx, out.dgamma}, std::move(label)});
  return out;
}

Builders norm_builders() {
  return {{layer_norm_backward_kind, in_turn<layer_norm_backward>},
          {layer_norm_forward_kind, in_turn<layer_norm_forward>},
          {residual_norm_backward_kind,
           [](const BuilderArguments& a) {
             layer_norm_backward(a.program, a.attributes<Norm>(), a.call.math, a.call.label, a.in("dy"), a.in("x"),
                                 a.in("gamma"), a.in("mean"), a.in("rstd"), a.in("dr"));
           }},
          {residual_norm_forward_kind, in_turn<residual_norm_forward>},
          {rms_norm_backward_kind, in_turn<rms_norm_backward>},
          {rms_norm_forward_kind, in_turn<rms_norm_forward>}};
}

}  // namespace gpubench
