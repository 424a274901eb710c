#include "reference/ops/token_groups.h"

#include <limits>
#include <utility>
#include <vector>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

void expect_data(OpKind op, const TensorSpec& x) {
  expect_axes(op, x, 2, "[rows, h]");
  expect_float(op, x);
}

void expect_pairs(OpKind op, const TensorSpec& pairs) {
  expect_axes(op, pairs, 2, "[tokens, k]");
  expect_dtype(op, pairs, DType::i32);
}

std::vector<ValueId> with_weights(const Program& program, OpKind op, std::vector<ValueId> inputs,
                                  const std::optional<ValueId>& weights, const Shape& pairs) {
  if (!weights) return inputs;
  expect_tensor(program, op, *weights, pairs, statistic_type(program.spec(inputs[0]).dtype));
  inputs.push_back(*weights);
  return inputs;
}

}  // namespace

TokenGroups group_tokens(Program& program, const TokenGrouping& attributes, std::string label, ValueId indices) {
  constexpr OpKind op = group_tokens_kind;
  const TensorSpec pairs = program.spec(indices);
  expect_pairs(op, pairs);
  if (pairs.shape.elements() > std::numeric_limits<std::int32_t>::max())
    refuse_shape(op, pairs.name, pairs.shape, "", "fewer than 2^31 pairs");
  if (attributes.experts < 1 || attributes.first < 0) {
    throw ProgramError("group_tokens: experts = " + std::to_string(attributes.experts) +
                       ", first = " + std::to_string(attributes.first) + "; expected at least 1, and at least 0");
  }
  const auto output = [&](const char* name, const Shape& shape) {
    return reserve_output(program, indices, label + name, DType::i32, shape, Role::activation);
  };
  const ValueId sizes = output(".sizes", {attributes.experts}), order = output(".order", {pairs.shape.elements()});
  const ValueId places = output(".places", pairs.shape);
  program.append({op, attributes, Math{}, {indices}, {sizes, order, places}, std::move(label)});
  return {sizes, order, places};
}

ValueId permute_tokens(Program& program, const Math& math, std::string label, ValueId x, ValueId order,
                       std::optional<ValueId> weights) {
  constexpr OpKind op = permute_tokens_kind;
  const TensorSpec tokens = program.spec(x);
  expect_data(op, tokens);
  const TensorSpec pairs = program.spec(order);
  expect_axes(op, pairs, 1, "[tokens k]");
  expect_dtype(op, pairs, DType::i32);
  const std::int64_t t = tokens.shape[0], n = pairs.shape[0];
  if (n % t != 0) refuse_shape(op, pairs.name, pairs.shape, "", "a multiple of " + std::to_string(t) + " tokens");
  std::vector<ValueId> inputs = with_weights(program, op, {x, order}, weights, {t, n / t});
  const ValueId y = reserve_output(program, x, label, tokens.dtype, {n, tokens.shape[1]}, role_of_result(program, {x}));
  program.append({op, TokenMove{weights.has_value()}, math, std::move(inputs), {y}, std::move(label)});
  return y;
}

ValueId unpermute_tokens(Program& program, const Math& math, std::string label, ValueId x, ValueId places,
                         std::optional<ValueId> weights) {
  constexpr OpKind op = unpermute_tokens_kind;
  const TensorSpec rows = program.spec(x);
  expect_data(op, rows);
  const Shape pairs = program.spec(places).shape;
  expect_pairs(op, program.spec(places));
  std::vector<ValueId> inputs = with_weights(program, op, {x, places}, weights, pairs);
  const ValueId y =
      reserve_output(program, x, label, rows.dtype, {pairs[0], rows.shape[1]}, role_of_result(program, {x}));
  program.append({op, TokenMove{weights.has_value()}, math, std::move(inputs), {y}, std::move(label)});
  return y;
}

ValueId unpermute_backward_weights(Program& program, const Math& math, std::string label, ValueId x, ValueId places,
                                   ValueId dy) {
  constexpr OpKind op = unpermute_backward_weights_kind;
  const TensorSpec rows = program.spec(x);
  expect_data(op, rows);
  const Shape pairs = program.spec(places).shape;
  expect_pairs(op, program.spec(places));
  expect_tensor(program, op, dy, {pairs[0], rows.shape[1]}, rows.dtype);
  const ValueId dweights = reserve_output(program, x, label, statistic_type(rows.dtype), pairs, Role::gradient);
  program.append({op, {}, math, {x, places, dy}, {dweights}, std::move(label)});
  return dweights;
}

Builders token_groups_builders() {
  return {{group_tokens_kind, in_turn<group_tokens>},
          {permute_tokens_kind, in_turn<permute_tokens>},
          {unpermute_backward_weights_kind, in_turn<unpermute_backward_weights>},
          {unpermute_tokens_kind, in_turn<unpermute_tokens>}};
}

}  // namespace gpubench
