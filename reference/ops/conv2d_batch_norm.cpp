#include "reference/ops/conv2d_batch_norm.h"

#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {

Conv2dBatchNormForward conv2d_batch_norm_forward(Program& program, const Conv2dBatchNorm& attributes, const Math& math,
                                                 std::string label, ValueId x, ValueId filter,
                                                 const BatchNormChannels& channels, std::optional<ValueId> r) {
  constexpr OpKind op = conv2d_batch_norm_forward_kind;
  if (attributes.r != r.has_value() || (attributes.r && !attributes.relu)) {
    throw ProgramError(std::string(op.name) + ": attributes {" + describe(attributes) + "} and " + (r ? "an" : "no") +
                       " r; expected both or none of the two, and r with relu only");
  }
  const Conv2dExtents e = extents_of(attributes.conv, program.spec(x).shape, program.spec(filter).shape);
  const DType type = program.spec(x).dtype;
  const Shape shape{e.n, e.p, e.q, e.k};
  expect_float(op, program.spec(x));
  expect_dtype(op, program.spec(filter), type);
  if (e.n * e.p * e.q < 2) {
    refuse_shape(op, "product", shape, "", "[n, p, q, k] with n p q of at least two, for a variance");
  }
  for (const ValueId id : {channels.gamma, channels.beta, channels.running_mean, channels.running_var})
    expect_tensor(program, op, id, {e.k}, statistic_type(type));
  std::vector<ValueId> inputs{x, filter, channels.gamma, channels.beta, channels.running_mean, channels.running_var};
  if (r) {
    expect_tensor(program, op, *r, shape, type);
    inputs.push_back(*r);
  }
  const auto output = [&](const char* name, DType dtype, const Shape& extents, Role role) {
    return reserve_output(program, x, label + name, dtype, extents, role);
  };
  const ValueId product = output("", type, shape, Role::activation), y = output(".y", type, shape, Role::activation);
  const ValueId mean = output(".mean", statistic_type(type), {e.k}, Role::statistic);
  const ValueId rstd = output(".rstd", statistic_type(type), {e.k}, Role::statistic);
  const Conv2dBatchNormForward out{
      product,
      {y, mean, rstd, update_output(program, channels.running_mean), update_output(program, channels.running_var)}};
  program.append({op,
                  attributes,
                  math,
                  std::move(inputs),
                  {product, y, mean, rstd, out.norm.running_mean, out.norm.running_var},
                  std::move(label)});
  return out;
}

OpCall convolution_of(const OpCall& call) {
  return {conv2d_forward_kind, call.attributes.as<Conv2dBatchNorm>().conv,
          call.math,           {call.inputs[0], call.inputs[1]},
          {call.outputs[0]},   call.label,
          call.phase};
}

OpCall batch_norm_of(const OpCall& call) {
  const auto& attributes = call.attributes.as<Conv2dBatchNorm>();
  OpCall norm{batch_norm_forward_kind, attributes.norm, call.math, {}, {}, call.label, call.phase};
  if (attributes.relu) {
    norm.kind = batch_norm_relu_forward_kind;
    norm.attributes = BatchNormRelu{attributes.norm, attributes.r};
  }
  norm.inputs = {call.outputs[0]};
  norm.inputs.insert(norm.inputs.end(), call.inputs.begin() + 2, call.inputs.end());
  norm.outputs.assign(call.outputs.begin() + 1, call.outputs.end());
  return norm;
}

Builders conv2d_batch_norm_builders() { return {{conv2d_batch_norm_forward_kind, in_turn<conv2d_batch_norm_forward>}}; }

}  // namespace gpubench
