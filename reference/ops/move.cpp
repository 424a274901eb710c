#include "reference/ops/move.h"

#include <algorithm>
#include <utility>

#include "reference/ops/builders.h"

namespace gpubench {
namespace {

ValueId append_move(Program& program, OpKind kind, Attributes attributes, std::string label, ValueId x,
                    TensorSpec y_spec, Phase phase = Phase::timed) {
  place_like(program, x, label, y_spec);
  const ValueId y = program.reserve(std::move(y_spec));
  program.append({kind, std::move(attributes), Math{}, {x}, {y}, std::move(label), phase});
  return y;
}

Shape permuted(const Shape& shape, const std::vector<int>& permutation) {
  std::vector<int> sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  bool valid = static_cast<int>(sorted.size()) == shape.rank();
  for (std::size_t axis = 0; valid && axis < sorted.size(); ++axis) valid = sorted[axis] == static_cast<int>(axis);
  if (!valid) {
    throw ProgramError("transpose: " + describe(Transpose{permutation}) + " of a tensor of shape " + shape.to_string() +
                       "; expected every axis once");
  }
  std::vector<std::int64_t> extents;
  for (const int axis : permutation) extents.push_back(shape[axis]);
  return Shape(std::move(extents));
}

}  // namespace

ValueId copy(Program& program, std::string label, ValueId x, Memory to) {
  const TensorSpec& spec = program.spec(x);
  TensorSpec y = tensor("", spec.dtype, spec.shape, spec.role);
  y.placement.memory = to;
  return append_move(program, copy_kind, {}, std::move(label), x, std::move(y));
}

ValueId transpose(Program& program, const Transpose& attributes, std::string label, ValueId x) {
  const TensorSpec& spec = program.spec(x);
  TensorSpec y = tensor("", spec.dtype, permuted(spec.shape, attributes.permutation), spec.role);
  return append_move(program, transpose_kind, attributes, std::move(label), x, std::move(y));
}

ValueId reorder(Program& program, Layout to, std::string label, ValueId x, Phase phase) {
  const TensorSpec& spec = program.spec(x);
  if (static_cast<int>(to.strides.size()) != spec.shape.rank()) {
    throw ProgramError("reorder: layout has " + std::to_string(to.strides.size()) + " strides but tensor '" +
                       spec.name + "' has shape " + spec.shape.to_string() + "; expected one stride per axis");
  }
  TensorSpec y = tensor("", spec.dtype, spec.shape, spec.role);
  y.layout = std::move(to);
  return append_move(program, reorder_kind, {}, std::move(label), x, std::move(y), phase);
}

void reorder_into(Program& program, std::string label, ValueId x, ValueId y) {
  expect_tensor(program, reorder_kind, y, program.spec(x).shape, program.spec(x).dtype);
  program.append({reorder_kind, {}, Math{}, {x}, {y}, std::move(label)});
}

void repeat_rows_into(Program& program, const Math& math, std::string label, ValueId x, ValueId y) {
  expect_dtype(repeat_rows_kind, program.spec(y), program.spec(x).dtype);
  expect_rows_divide(repeat_rows_kind, program.spec(x), program.spec(y));
  program.append({repeat_rows_kind, {}, math, {x}, {y}, std::move(label)});
}

Builders move_builders() {
  return {{copy_kind, in_turn<copy>},
          {reorder_kind, in_turn<reorder_into, true>},
          {repeat_rows_kind, in_turn<repeat_rows_into, true>},
          {transpose_kind, in_turn<transpose>}};
}

}  // namespace gpubench
