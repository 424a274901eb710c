#include "reference/ops/batch_norm.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

/// Requires a float x with at least two rows, and vectors with one element per channel.
void check(const Program& program, OpKind op, ValueId x, std::initializer_list<ValueId> of_channels) {
  const TensorSpec& data = program.spec(x);
  expect_float(op, data);
  if (data.shape.rank() < 2 || data.shape.elements() < 2 * data.shape[-1] || data.shape[-1] < 1) {
    refuse_shape(op, data.name, data.shape, "", "[..., c] with at least two rows, for a variance");
  }
  for (const ValueId id : of_channels) expect_tensor(program, op, id, {data.shape[-1]}, statistic_type(data.dtype));
}

BatchNormForward append_forward(Program& program, OpKind kind, const BatchNorm& norm, Attributes attributes,
                                const Math& math, std::string label, ValueId x, const BatchNormChannels& channels,
                                std::optional<ValueId> r) {
  const auto& [gamma, beta, running_mean, running_var] = channels;
  check(program, kind, x, {gamma, beta, running_mean, running_var});
  const bool in_range = norm.epsilon >= 0.0 && norm.momentum >= 0.0 && norm.momentum <= 1.0;
  if (!in_range) {
    throw ProgramError(std::string(kind.name) + ": attributes are {" + describe(norm) +
                       "}; expected an epsilon of 0 or more and a momentum from 0 to 1");
  }
  const BatchNormForward out{reserve_like(program, x, label + ".y", Role::activation),
                             reserve_like(program, gamma, label + ".mean", Role::statistic),
                             reserve_like(program, gamma, label + ".rstd", Role::statistic),
                             update_output(program, running_mean), update_output(program, running_var)};
  std::vector<ValueId> inputs{x, gamma, beta, running_mean, running_var};
  if (r) inputs.push_back(*r);
  program.append({kind,
                  std::move(attributes),
                  math,
                  std::move(inputs),
                  {out.y, out.mean, out.rstd, out.running_mean, out.running_var},
                  std::move(label)});
  return out;
}

BatchNormBackward reserve_gradients(Program& program, const std::string& label, ValueId x, ValueId gamma) {
  return {reserve_like(program, x, label + ".dx", Role::gradient),
          reserve_like(program, gamma, label + ".dgamma", Role::gradient),
          reserve_like(program, gamma, label + ".dbeta", Role::gradient)};
}

}  // namespace

BatchNormForward batch_norm_forward(Program& program, const BatchNorm& attributes, const Math& math, std::string label,
                                    ValueId x, const BatchNormChannels& channels) {
  return append_forward(program, batch_norm_forward_kind, attributes, attributes, math, std::move(label), x, channels,
                        {});
}

BatchNormForward batch_norm_relu_forward(Program& program, const BatchNorm& attributes, const Math& math,
                                         std::string label, ValueId x, const BatchNormChannels& channels,
                                         std::optional<ValueId> r) {
  if (r) expect_tensor(program, batch_norm_relu_forward_kind, *r, program.spec(x).shape, program.spec(x).dtype);
  return append_forward(program, batch_norm_relu_forward_kind, attributes, BatchNormRelu{attributes, r.has_value()},
                        math, std::move(label), x, channels, r);
}

BatchNormBackward batch_norm_backward(Program& program, const Math& math, std::string label, ValueId dy, ValueId x,
                                      ValueId gamma, ValueId mean, ValueId rstd) {
  check(program, batch_norm_backward_kind, x, {gamma, mean, rstd});
  expect_tensor(program, batch_norm_backward_kind, dy, program.spec(x).shape, program.spec(x).dtype);
  const BatchNormBackward out = reserve_gradients(program, label, x, gamma);
  program.append({batch_norm_backward_kind,
                  {},
                  math,
                  {dy, x, gamma, mean, rstd},
                  {out.dx, out.dgamma, out.dbeta},
                  std::move(label)});
  return out;
}

std::vector<ValueId> batch_norm_relu_backward(Program& program, const BatchNormReluBackward& attributes,
                                              const Math& math, std::string label, const BatchNormReluSaved& saved,
                                              ValueId dy, std::optional<ValueId> dy2) {
  const OpKind kind = batch_norm_relu_backward_kind;
  const auto& [x, gamma, mean, rstd, y] = saved;
  check(program, kind, x, {gamma, mean, rstd});
  std::vector<ValueId> inputs{dy, x, gamma, mean, rstd, y};
  if (attributes.dy2 != dy2.has_value() || (attributes.dy2 && !attributes.dr)) {
    throw ProgramError(std::string(kind.name) + ": attributes are {" + describe(attributes) + "}" +
                       (dy2 ? " with" : " without") +
                       " a second gradient; expected attribute dy2 if and only if one is given, and dr with it");
  }
  if (dy2) inputs.push_back(*dy2);
  for (const ValueId id : inputs) {
    if (id == x || id == gamma || id == mean || id == rstd) continue;
    expect_tensor(program, kind, id, program.spec(x).shape, program.spec(x).dtype);
  }
  const BatchNormBackward out = reserve_gradients(program, label, x, gamma);
  std::vector<ValueId> outputs{out.dx, out.dgamma, out.dbeta};
  if (attributes.dr) outputs.push_back(reserve_like(program, x, label + ".dr", Role::gradient));
  program.append({kind, attributes, math, std::move(inputs), outputs, std::move(label)});
  return outputs;
}

Builders batch_norm_builders() {
  return {{batch_norm_backward_kind, in_turn<batch_norm_backward>},
          {batch_norm_forward_kind, in_turn<batch_norm_forward>},
          {batch_norm_relu_backward_kind,
           [](const BuilderArguments& a) {
             batch_norm_relu_backward(a.program, a.attributes<BatchNormReluBackward>(), a.call.math, a.call.label,
                                      {a.in("x"), a.in("gamma"), a.in("mean"), a.in("rstd"), a.in("y")}, a.in("dy"),
                                      a.optional("dy2"));
           }},
          {batch_norm_relu_forward_kind, [](const BuilderArguments& a) {
             batch_norm_relu_forward(
                 a.program, a.attributes<BatchNormRelu>().norm, a.call.math, a.call.label, a.in("x"),
                 {a.in("gamma"), a.in("beta"), a.in("running_mean"), a.in("running_var")}, a.optional("r"));
           }}};
}

}  // namespace gpubench
