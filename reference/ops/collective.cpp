#include "reference/ops/collective.h"

#include <algorithm>
#include <array>
#include <utility>

#include "reference/ops/tensor_checks.h"

namespace gpubench {
namespace {

void expect_ranks(OpKind kind, int ranks, std::size_t tensors) {
  if (ranks >= 1 && tensors > 0 && tensors % static_cast<std::size_t>(ranks) == 0) return;
  throw ProgramError(std::string(kind.name) + ": " + std::to_string(tensors) + " tensors for " + std::to_string(ranks) +
                     " ranks; expected as many of each rank");
}

/// A dense tensor on this rank.
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

/// One tensor of each rank, all of one shape and type.
void expect_alike(const Program& program, OpKind kind, int ranks, std::span<const ValueId> x) {
  expect_ranks(kind, ranks, x.size());
  const std::size_t each = x.size() / static_cast<std::size_t>(ranks);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const TensorSpec& tensor = program.spec(x[i]);
    const TensorSpec& model = program.spec(x[i % each]);
    expect_on_rank(kind, tensor, static_cast<int>(i / each));
    expect_shape(kind, tensor, model.shape);
    expect_dtype(kind, tensor, model.dtype);
  }
}

void expect_one_each(OpKind kind, int ranks, std::span<const ValueId> x) {
  if (x.size() == static_cast<std::size_t>(ranks)) return;
  throw ProgramError(std::string(kind.name) + ": " + std::to_string(x.size()) + " tensors; expected one of each of " +
                     std::to_string(ranks) + " ranks");
}

/// A new tensor on a rank, which other ranks have alike.
ValueId reserve_on(Program& program, std::string_view label, int rank, int ranks, DType dtype, const Shape& shape,
                   Role role) {
  TensorSpec spec = tensor(program.unique_name(name_on_rank(label, rank, ranks)), dtype, shape, role);
  spec.placement.rank = rank;
  spec.placement.ranks = ranks;
  return program.reserve(std::move(spec));
}

/// The next version of a value; "x'@1", so that it has its rank at the end as x has.
ValueId update_on(Program& program, ValueId old) {
  const TensorSpec& spec = program.spec(old);
  const std::string name = std::string(spec.global_name()) + "'";
  return program.update(old, program.unique_name(name_on_rank(name, spec.placement.rank, spec.placement.ranks)));
}

std::vector<ValueId> appended(Program& program, OpCall call) {
  std::vector<ValueId> results = call.outputs;
  program.append(std::move(call));
  return results;
}

/// Part `rank` of `ranks` of a tensor, seen as one axis.
ValueId part_of_rank(Program& program, ValueId whole, int rank, int ranks) {
  const TensorSpec& spec = program.spec(whole);
  const std::int64_t part = spec.shape.elements() / ranks;
  TensorSpec view = tensor(program.unique_name(name_on_rank(std::string(spec.global_name()) + ".part", rank, ranks)),
                           spec.dtype, Shape{part}, spec.role, spec.fill);
  return program.part(whole, std::move(view), rank * part);
}

void expect_divisible(OpKind kind, const TensorSpec& tensor, int ranks) {
  if (tensor.shape.elements() % ranks == 0) return;
  refuse_shape(kind, tensor.name, tensor.shape, "", "a multiple of " + std::to_string(ranks) + " elements");
}

}  // namespace

bool is_collective(OpKind kind) {
  constexpr std::array kinds{all_reduce_kind, all_gather_kind, reduce_scatter_kind,
                             broadcast_kind,  all_to_all_kind, send_recv_kind};
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

int ranks_of(const OpCall& call) {
  if (call.kind == all_reduce_kind) return call.attributes.as<AllReduce>().ranks;
  if (call.kind == all_gather_kind) return call.attributes.as<AllGather>().ranks;
  if (call.kind == reduce_scatter_kind) return call.attributes.as<ReduceScatter>().ranks;
  if (call.kind == broadcast_kind) return call.attributes.as<Broadcast>().ranks;
  if (call.kind == all_to_all_kind) return call.attributes.as<AllToAll>().ranks;
  if (call.kind == send_recv_kind) return call.attributes.as<SendRecv>().ranks;
  throw ProgramError(std::string(call.kind.name) + " is no collective: one rank runs it");
}

bool reduces(OpKind kind) { return kind == all_reduce_kind || kind == reduce_scatter_kind; }

std::string_view name(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum: return "sum";
    case Reduction::average: return "avg";
    case Reduction::maximum: return "max";
  }
  return "?";
}

bool AllToAll::is_even() const {
  return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

std::vector<ValueId> all_reduce(Program& program, const AllReduce& attributes, const Math& math, std::string label,
                                std::span<const ValueId> x, bool in_place) {
  expect_alike(program, all_reduce_kind, attributes.ranks, x);
  OpCall call{all_reduce_kind, attributes, math, {x.begin(), x.end()}, {}, label};
  for (const ValueId id : x) {
    expect_float(all_reduce_kind, program.spec(id));
    const TensorSpec spec = program.spec(id);
    call.outputs.push_back(in_place ? update_on(program, id)
                                    : reserve_on(program, label, spec.placement.rank, attributes.ranks, spec.dtype,
                                                 spec.shape, spec.role));
  }
  return appended(program, std::move(call));
}

std::vector<ValueId> all_gather(Program& program, const AllGather& attributes, std::string label,
                                std::span<const ValueId> x) {
  expect_one_each(all_gather_kind, attributes.ranks, x);
  expect_alike(program, all_gather_kind, attributes.ranks, x);
  OpCall call{all_gather_kind, attributes, Math{}, {x.begin(), x.end()}, {}, label};
  const TensorSpec spec = program.spec(x[0]);
  for (int rank = 0; rank < attributes.ranks; ++rank) {
    call.outputs.push_back(reserve_on(program, label, rank, attributes.ranks, spec.dtype,
                                      Shape{spec.shape.elements() * attributes.ranks}, spec.role));
  }
  return appended(program, std::move(call));
}

std::vector<ValueId> all_gather_in_place(Program& program, const AllGather& attributes, std::string label,
                                         std::span<const ValueId> whole) {
  expect_one_each(all_gather_kind, attributes.ranks, whole);
  expect_alike(program, all_gather_kind, attributes.ranks, whole);
  expect_divisible(all_gather_kind, program.spec(whole[0]), attributes.ranks);
  OpCall call{all_gather_kind, attributes, Math{}, {}, {}, std::move(label)};
  for (int rank = 0; rank < attributes.ranks; ++rank) {
    const ValueId mine = whole[static_cast<std::size_t>(rank)];
    call.inputs.push_back(part_of_rank(program, mine, rank, attributes.ranks));
    call.outputs.push_back(update_on(program, mine));
  }
  return appended(program, std::move(call));
}

std::vector<ValueId> reduce_scatter(Program& program, const ReduceScatter& attributes, const Math& math,
                                    std::string label, std::span<const ValueId> x, bool in_place) {
  expect_one_each(reduce_scatter_kind, attributes.ranks, x);
  expect_alike(program, reduce_scatter_kind, attributes.ranks, x);
  expect_float(reduce_scatter_kind, program.spec(x[0]));
  expect_divisible(reduce_scatter_kind, program.spec(x[0]), attributes.ranks);
  OpCall call{reduce_scatter_kind, attributes, math, {x.begin(), x.end()}, {}, label};
  for (int rank = 0; rank < attributes.ranks; ++rank) {
    const ValueId mine = x[static_cast<std::size_t>(rank)];
    const TensorSpec spec = program.spec(mine);
    call.outputs.push_back(in_place ? update_on(program, part_of_rank(program, mine, rank, attributes.ranks))
                                    : reserve_on(program, label, rank, attributes.ranks, spec.dtype,
                                                 Shape{spec.shape.elements() / attributes.ranks}, spec.role));
  }
  return appended(program, std::move(call));
}

std::vector<ValueId> broadcast(Program& program, const Broadcast& attributes, std::string label, ValueId x) {
  const TensorSpec spec = program.spec(x);
  if (attributes.root < 0 || attributes.root >= attributes.ranks) {
    throw ProgramError("broadcast: root " + std::to_string(attributes.root) + " of " +
                       std::to_string(attributes.ranks) + " ranks; expected one of them");
  }
  expect_on_rank(broadcast_kind, spec, attributes.root);
  OpCall call{broadcast_kind, attributes, Math{}, {x}, {}, label};
  for (int rank = 0; rank < attributes.ranks; ++rank)
    call.outputs.push_back(reserve_on(program, label, rank, attributes.ranks, spec.dtype, spec.shape, spec.role));
  return appended(program, std::move(call));
}

std::vector<ValueId> all_to_all(Program& program, const AllToAll& attributes, std::string label,
                                std::span<const ValueId> x) {
  expect_one_each(all_to_all_kind, attributes.ranks, x);
  const auto square = static_cast<std::size_t>(attributes.ranks) * static_cast<std::size_t>(attributes.ranks);
  if (attributes.counts.size() != square || *std::min_element(attributes.counts.begin(), attributes.counts.end()) < 0) {
    throw ProgramError("all_to_all: " + std::to_string(attributes.counts.size()) + " counts for " +
                       std::to_string(attributes.ranks) + " ranks; expected one, not negative, for each pair");
  }
  OpCall call{all_to_all_kind, attributes, Math{}, {x.begin(), x.end()}, {}, label};
  for (int rank = 0; rank < attributes.ranks; ++rank) {
    const TensorSpec spec = program.spec(x[static_cast<std::size_t>(rank)]);
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (int peer = 0; peer < attributes.ranks; ++peer) {
      sent += attributes.count(rank, peer);
      received += attributes.count(peer, rank);
    }
    expect_on_rank(all_to_all_kind, spec, rank);
    expect_dtype(all_to_all_kind, spec, program.spec(x[0]).dtype);
    expect_shape(all_to_all_kind, spec, Shape{sent});
    call.outputs.push_back(reserve_on(program, label, rank, attributes.ranks, spec.dtype, Shape{received}, spec.role));
  }
  return appended(program, std::move(call));
}

std::vector<ValueId> send_recv(Program& program, const SendRecv& attributes, std::string label,
                               std::span<const ValueId> x) {
  expect_one_each(send_recv_kind, attributes.ranks, x);
  expect_alike(program, send_recv_kind, attributes.ranks, x);
  OpCall call{send_recv_kind, attributes, Math{}, {x.begin(), x.end()}, {}, label};
  for (int rank = 0; rank < attributes.ranks; ++rank) {
    const TensorSpec spec = program.spec(x[static_cast<std::size_t>(rank)]);
    call.outputs.push_back(reserve_on(program, label, rank, attributes.ranks, spec.dtype, spec.shape, spec.role));
  }
  return appended(program, std::move(call));
}

}  // namespace gpubench
