#include "reference/ops/pointwise.h"

#include <initializer_list>
#include <utility>
#include <vector>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

/// Appends the op and reserves missing results under `names`, or under the label. Inputs from index `repeated` may be
/// repeated.
std::vector<ValueId> append(Program& program, OpCall call, Role role, DType type,
                            std::initializer_list<const char*> names = {""}, std::size_t repeated = 99) {
  const TensorSpec first = program.spec(call.inputs.front());
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    const TensorSpec& input = program.spec(call.inputs[i]);
    expect_float(call.kind, input);
    i < repeated ? expect_shape(call.kind, input, first.shape) : expect_rows_divide(call.kind, input, first);
  }
  const bool has_outputs = !call.outputs.empty();
  for (const char* name : names) {
    if (has_outputs) break;
    call.outputs.push_back(reserve_output(program, call.inputs.front(), call.label + name, type, first.shape, role));
  }
  std::vector<ValueId> results = call.outputs;
  program.append(std::move(call));
  return results;
}

void expect_type_of_first(const Program& program, OpKind kind, ValueId first, std::initializer_list<ValueId> others) {
  for (const ValueId other : others) expect_dtype(kind, program.spec(other), program.spec(first).dtype);
}

ValueId activation(Program& program, OpKind kind, Attributes attributes, const Math& math, std::string label,
                   ValueId x) {
  return append(program, {kind, std::move(attributes), math, {x}, {}, std::move(label)}, Role::activation,
                program.spec(x).dtype)
      .front();
}

/// `saved`: an input or output of the forward.
ValueId activation_backward(Program& program, OpKind kind, Attributes attributes, const Math& math, std::string label,
                            ValueId saved, ValueId dy) {
  return append(program, {kind, std::move(attributes), math, {saved, dy}, {}, std::move(label)}, Role::gradient,
                program.spec(saved).dtype)
      .front();
}

ValueId combine(Program& program, OpKind kind, Attributes attributes, const Math& math, std::string label, ValueId a,
                ValueId b) {
  expect_type_of_first(program, kind, a, {b});
  return append(program, {kind, std::move(attributes), math, {a, b}, {}, std::move(label)},
                role_of_result(program, {a, b}), program.spec(a).dtype)
      .front();
}

ValueId with_repeated(Program& program, OpKind kind, const Math& math, std::string label, ValueId x,
                      std::initializer_list<ValueId> repeated) {
  expect_type_of_first(program, kind, x, repeated);
  OpCall call{kind, {}, math, {x}, {}, std::move(label)};
  call.inputs.insert(call.inputs.end(), repeated);
  return append(program, std::move(call), role_of_result(program, {x}), program.spec(x).dtype, {""}, 1).front();
}

}  // namespace

ValueId triad(Program& program, const Triad& attributes, const Math& math, std::string label, ValueId b, ValueId c) {
  return combine(program, triad_kind, attributes, math, std::move(label), b, c);
}

ValueId scale(Program& program, const Scale& attributes, const Math& math, std::string label, ValueId x) {
  return append(program, {scale_kind, attributes, math, {x}, {}, std::move(label)}, role_of_result(program, {x}),
                program.spec(x).dtype)
      .front();
}

ValueId add(Program& program, const Math& math, std::string label, ValueId a, ValueId b) {
  return combine(program, add_kind, {}, math, std::move(label), a, b);
}

ValueId multiply(Program& program, const Math& math, std::string label, ValueId a, ValueId b) {
  return with_repeated(program, multiply_kind, math, std::move(label), a, {b});
}

ValueId modulate_forward(Program& program, const Math& math, std::string label, ValueId x, ValueId scale,
                         ValueId shift) {
  return with_repeated(program, modulate_forward_kind, math, std::move(label), x, {scale, shift});
}

ValueId modulate_backward(Program& program, const Math& math, std::string label, ValueId dy, ValueId scale) {
  return with_repeated(program, modulate_backward_kind, math, std::move(label), dy, {scale});
}

ValueId cast(Program& program, DType to, std::string label, ValueId x) {
  return append(program, {cast_kind, {}, Math{}, {x}, {}, std::move(label)}, program.spec(x).role, to).front();
}

ValueId gelu_forward(Program& program, const Gelu& attributes, const Math& math, std::string label, ValueId x) {
  return activation(program, gelu_forward_kind, attributes, math, std::move(label), x);
}

ValueId gelu_backward(Program& program, const Gelu& attributes, const Math& math, std::string label, ValueId x,
                      ValueId dy) {
  return activation_backward(program, gelu_backward_kind, attributes, math, std::move(label), x, dy);
}

ValueId relu_forward(Program& program, const Math& math, std::string label, ValueId x) {
  return activation(program, relu_forward_kind, {}, math, std::move(label), x);
}

ValueId relu_backward(Program& program, const Math& math, std::string label, ValueId y, ValueId dy) {
  return activation_backward(program, relu_backward_kind, {}, math, std::move(label), y, dy);
}

ValueId silu_forward(Program& program, const Math& math, std::string label, ValueId x) {
  return activation(program, silu_forward_kind, {}, math, std::move(label), x);
}

ValueId silu_backward(Program& program, const Math& math, std::string label, ValueId x, ValueId dy) {
  return activation_backward(program, silu_backward_kind, {}, math, std::move(label), x, dy);
}

ValueId squared_relu_forward(Program& program, const Math& math, std::string label, ValueId x) {
  return activation(program, squared_relu_forward_kind, {}, math, std::move(label), x);
}

ValueId squared_relu_backward(Program& program, const Math& math, std::string label, ValueId x, ValueId dy) {
  return activation_backward(program, squared_relu_backward_kind, {}, math, std::move(label), x, dy);
}

ValueId swiglu_forward(Program& program, const Math& math, std::string label, ValueId gate, ValueId up) {
  return combine(program, swiglu_forward_kind, {}, math, std::move(label), gate, up);
}

SwigluBackward swiglu_backward(Program& program, const Math& math, std::string label, ValueId gate, ValueId up,
                               ValueId dy, const std::optional<SwigluBackward>& into) {
  expect_type_of_first(program, swiglu_backward_kind, gate, {up, dy});
  OpCall call{swiglu_backward_kind, {}, math, {gate, up, dy}, {}, std::move(label)};
  if (into) {
    for (const ValueId gradient : {into->dgate, into->dup}) {
      expect_shape(call.kind, program.spec(gradient), program.spec(gate).shape);
      expect_type_of_first(program, call.kind, gate, {gradient});
      call.outputs.push_back(gradient);
    }
  }
  const auto results = append(program, std::move(call), Role::gradient, program.spec(gate).dtype, {".dgate", ".dup"});
  return {results[0], results[1]};
}

Builders pointwise_builders() {
  return {{add_kind, in_turn<add>},
          {cast_kind, in_turn<cast>},
          {gelu_backward_kind, in_turn<gelu_backward>},
          {gelu_forward_kind, in_turn<gelu_forward>},
          {modulate_backward_kind, in_turn<modulate_backward>},
          {modulate_forward_kind, in_turn<modulate_forward>},
          {multiply_kind, in_turn<multiply>},
          {relu_backward_kind, in_turn<relu_backward>},
          {relu_forward_kind, in_turn<relu_forward>},
          {scale_kind, in_turn<scale>},
          {silu_backward_kind, in_turn<silu_backward>},
          {silu_forward_kind, in_turn<silu_forward>},
          {squared_relu_backward_kind, in_turn<squared_relu_backward>},
          {squared_relu_forward_kind, in_turn<squared_relu_forward>},
          {swiglu_backward_kind, in_turn<swiglu_backward>},
          {swiglu_forward_kind, in_turn<swiglu_forward>},
          {triad_kind, in_turn<triad>}};
}

}  // namespace gpubench
