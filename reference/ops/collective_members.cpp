#include "reference/ops/collective_members.h"

#include <algorithm>
#include <utility>

#include "reference/ops/tensor_checks.h"

namespace gpubench {

bool Members::is_across(const AxisSpread& spread) const {
  return across.empty() || std::find(across.begin(), across.end(), spread.mesh_axis) != across.end();
}

Members members_of(const Program& program, OpKind kind, int ranks, const RankGroup& given) {
  Members members{given.empty() && ranks > 0 ? RankGroup::first(ranks) : given, {}, {}};
  const RankGroup& group = members.group;
  if (group.size() != ranks) {
    throw ProgramError(std::string(kind.name) + ": a group of " + std::to_string(group.size()) + " ranks; expected " +
                       std::to_string(ranks));
  }
  for (int place = 0; place < group.size(); ++place) {
    if (program.holds(group[place])) members.held.push_back(place);
  }
  if (members.held.empty())
    throw ProgramError(std::string(kind.name) + ": the program holds none of the ranks " + group.to_string());
  const Mesh& mesh = program.mesh();
  for (int axis = 0; axis < static_cast<int>(mesh.axes().size()); ++axis) {
    const auto differs = [&](int rank) { return mesh.place(rank, axis) != mesh.place(group[0], axis); };
    if (std::any_of(group.members().begin(), group.members().end(), differs)) members.across.push_back(axis);
  }
  return members;
}

namespace {

void expect_held(OpKind kind, const Members& members, std::size_t tensors) {
  if (tensors > 0 && tensors % members.held.size() == 0) return;
  throw ProgramError(std::string(kind.name) + ": " + std::to_string(tensors) + " tensors for " +
                     std::to_string(members.held.size()) + " ranks; expected equally many per rank");
}

}  // namespace

void expect_on_rank(OpKind kind, const TensorSpec& tensor, int rank) {
  if (tensor.placement.rank != rank) {
    throw ProgramError(std::string(kind.name) + ": tensor '" + tensor.name + "' lies on rank " +
                       std::to_string(tensor.placement.rank) + "; expected rank " + std::to_string(rank));
  }
  if (!tensor.layout.is_row_major(tensor.shape)) {
    throw ProgramError(std::string(kind.name) + ": tensor '" + tensor.name + "' has layout " +
                       tensor.layout.to_string(tensor.shape) + "; expected dense rows");
  }
}

void expect_equal_specs(const Program& program, OpKind kind, const Members& members, std::span<const ValueId> x) {
  expect_held(kind, members, x.size());
  const std::size_t each = x.size() / members.held.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const TensorSpec& tensor = program.spec(x[i]);
    const TensorSpec& model = program.spec(x[i % each]);
    expect_on_rank(kind, tensor, members.group[members.held[i / each]]);
    expect_shape(kind, tensor, model.shape);
    expect_dtype(kind, tensor, model.dtype);
  }
}

std::vector<AxisSpread> alike_on(const Members& members, const TensorSpec& operand) {
  std::vector<AxisSpread> left;
  for (const AxisSpread& spread : operand.placement.spread) {
    if (!members.is_across(spread)) left.push_back(spread);
  }
  return left;
}

ValueId reserve_on(Program& program, std::string_view label, const TensorSpec& like, int rank, const Shape& shape,
                   std::vector<AxisSpread> spread) {
  const int ranks = like.placement.ranks;
  TensorSpec spec = tensor(program.unique_name(name_on_rank(label, rank, ranks)), like.dtype, shape, like.role);
  spec.placement = Placement::on(rank, ranks);
  spec.placement.spread = std::move(spread);
  return program.reserve(std::move(spec));
}

ValueId reserve_replicated(Program& program, std::string_view label, const Members& members, ValueId x,
                           const Shape& shape) {
  const TensorSpec& like = program.spec(x);
  return reserve_on(program, label, like, like.placement.rank, shape, alike_on(members, like));
}

std::vector<ValueId> appended(Program& program, OpCall call) {
  std::vector<ValueId> results = call.outputs;
  program.append(std::move(call));
  return results;
}

OpCall call_of(OpKind kind, Attributes attributes, const Math& math, std::string label, const Members& members,
               std::span<const ValueId> inputs) {
  OpCall call{kind, std::move(attributes), math, {inputs.begin(), inputs.end()}, {}, std::move(label)};
  call.group = members.group;
  call.held = members.group;
  if (members.held.size() < static_cast<std::size_t>(members.group.size())) {
    std::vector<int> held;
    for (const int place : members.held) held.push_back(members.group[place]);
    call.held = RankGroup(std::move(held));
  }
  return call;
}

}  // namespace gpubench
