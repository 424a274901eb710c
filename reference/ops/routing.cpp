#include "reference/ops/routing.h"

#include <utility>
#include <vector>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

void expect_logits(OpKind op, const Routing& attributes, const TensorSpec& logits) {
  expect_axes(op, logits, 2, "[tokens, experts]");
  expect_float(op, logits);
  if (attributes.k >= 1 && attributes.k <= logits.shape[1]) return;
  throw ProgramError(std::string(op.name) + ": k = " + std::to_string(attributes.k) + "; expected 1 to " +
                     std::to_string(logits.shape[1]) + ", the experts of '" + logits.name + "'");
}

}  // namespace

RoutingForward routing_forward(Program& program, const Routing& attributes, const Math& math, std::string label,
                               ValueId logits, std::optional<ValueId> bias) {
  constexpr OpKind op = routing_forward_kind;
  const TensorSpec scores = program.spec(logits);
  expect_logits(op, attributes, scores);
  if (bias.has_value() != attributes.bias)
    throw ProgramError("routing_forward: operand bias and attribute bias differ; expected both or neither");
  std::vector<ValueId> inputs{logits};
  if (bias) {
    expect_tensor(program, op, *bias, {scores.shape[1]}, statistic_type(scores.dtype));
    inputs.push_back(*bias);
  }
  const Shape chosen{scores.shape[0], attributes.k};
  const RoutingForward out{
      reserve_output(program, logits, label + ".indices", DType::i32, chosen, Role::activation),
      reserve_output(program, logits, label + ".weights", statistic_type(scores.dtype), chosen, Role::activation)};
  program.append({op, attributes, math, std::move(inputs), {out.indices, out.weights}, std::move(label)});
  return out;
}

ValueId routing_backward(Program& program, const Routing& attributes, const Math& math, std::string label,
                         ValueId logits, ValueId indices, ValueId dweights) {
  constexpr OpKind op = routing_backward_kind;
  const TensorSpec scores = program.spec(logits);
  expect_logits(op, attributes, scores);
  expect_tensor(program, op, indices, {scores.shape[0], attributes.k}, DType::i32);
  expect_tensor(program, op, dweights, {scores.shape[0], attributes.k}, statistic_type(scores.dtype));
  Routing without_bias = attributes;
  without_bias.bias = false;
  const ValueId dlogits = reserve_like(program, logits, label, Role::gradient);
  program.append({op, without_bias, math, {logits, indices, dweights}, {dlogits}, std::move(label)});
  return dlogits;
}

Builders routing_builders() {
  return {{routing_backward_kind, in_turn<routing_backward>}, {routing_forward_kind, in_turn<routing_forward>}};
}

}  // namespace gpubench
