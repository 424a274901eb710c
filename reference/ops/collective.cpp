#include "reference/ops/collective.h"

#include <algorithm>
#include <array>
#include <utility>

#include "reference/ops/collective_members.h"
#include "reference/ops/tensor_checks.h"
#include "reference/ops/token_exchange.h"

namespace gpubench {
namespace {

void expect_one_each(OpKind kind, const Members& members, std::span<const ValueId> x) {
  if (x.size() == members.held.size()) return;
  throw ProgramError(std::string(kind.name) + ": " + std::to_string(x.size()) + " tensors; expected one of each of " +
                     std::to_string(members.held.size()) + " ranks");
}

bool is_addend(const TensorSpec& spec, const Members& members) {
  const std::vector<AxisSpread>& spreads = spec.placement.spread;
  return std::any_of(spreads.begin(), spreads.end(), [&](const AxisSpread& spread) {
    return spread.kind == AxisSpread::Kind::partial && members.is_across(spread);
  });
}

Shape shape_of_result(OpKind kind, std::int64_t elements, const std::optional<Shape>& wanted) {
  if (wanted && wanted->elements() != elements)
    throw ProgramError(std::string(kind.name) + ": results of " + std::to_string(elements) + " elements in shape " +
                       wanted->to_string() + "; expected a shape with equally many");
  return wanted.value_or(Shape{elements});
}

/// The next version of a value, named "x'@1" for rank 1. Addends become shards of their sum.
ValueId update_on(Program& program, ValueId old, const Members& members) {
  const TensorSpec& spec = program.spec(old);
  std::vector<AxisSpread> spread = spec.placement.spread;
  std::erase_if(spread,
                [&](const AxisSpread& one) { return one.kind == AxisSpread::Kind::partial && members.is_across(one); });
  const std::string name = std::string(spec.global_name()) + "'";
  return program.update(old, program.unique_name(name_on_rank(name, spec.placement.rank, spec.placement.ranks)),
                        std::move(spread));
}

ValueId part_of_member(Program& program, ValueId whole, const Members& members, int place) {
  const TensorSpec& spec = program.spec(whole);
  const std::int64_t part = spec.shape.elements() / members.group.size();
  const std::string name = std::string(spec.global_name()) + ".part";
  TensorSpec view = tensor(program.unique_name(name_on_rank(name, spec.placement.rank, spec.placement.ranks)),
                           spec.dtype, Shape{part}, spec.role, spec.fill);
  return program.part(whole, std::move(view), place * part);
}

void expect_divisible(OpKind kind, const TensorSpec& tensor, int ranks) {
  if (tensor.shape.elements() % ranks == 0) return;
  refuse_shape(kind, tensor.name, tensor.shape, "", "a multiple of " + std::to_string(ranks) + " elements");
}

}  // namespace

bool is_collective(OpKind kind) {
  constexpr std::array kinds{all_reduce_kind, all_gather_kind, reduce_scatter_kind,  broadcast_kind,
                             all_to_all_kind, send_recv_kind,  dispatch_tokens_kind, return_tokens_kind};
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

int ranks_of(const OpCall& call) {
  if (call.kind == all_reduce_kind) return call.attributes.as<AllReduce>().ranks;
  if (call.kind == all_gather_kind) return call.attributes.as<AllGather>().ranks;
  if (call.kind == reduce_scatter_kind) return call.attributes.as<ReduceScatter>().ranks;
  if (call.kind == broadcast_kind) return call.attributes.as<Broadcast>().ranks;
  if (call.kind == all_to_all_kind) return call.attributes.as<AllToAll>().ranks;
  if (call.kind == send_recv_kind) return call.attributes.as<SendRecv>().ranks;
  if (exchanges_tokens(call.kind)) return call.attributes.as<TokenExchange>().ranks;
  throw ProgramError(std::string(call.kind.name) + " is not a collective: a single rank runs it");
}

void expect_all_held(const OpCall& call) {
  if (call.held.size() == call.group.size()) return;
  throw ProgramError(std::string(call.kind.name) + " '" + call.label + "' is between ranks " + call.group.to_string() +
                     ", of which this process holds " + call.held.to_string() + " only");
}

bool reduces(OpKind kind) { return kind == all_reduce_kind || kind == reduce_scatter_kind; }

bool AllToAll::is_even() const {
  return std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) == counts.end();
}

std::vector<ValueId> all_reduce(Program& program, const AllReduce& attributes, const Math& math, std::string label,
                                std::span<const ValueId> x, bool in_place, const RankGroup& group) {
  const Members members = members_of(program, all_reduce_kind, attributes.ranks, group);
  expect_equal_specs(program, all_reduce_kind, members, x);
  OpCall call = call_of(all_reduce_kind, attributes, math, label, members, x);
  for (const ValueId id : x) {
    expect_float(all_reduce_kind, program.spec(id));
    call.outputs.push_back(in_place ? update_on(program, id, members)
                                    : reserve_replicated(program, label, members, id, program.spec(id).shape));
  }
  return appended(program, std::move(call));
}

std::vector<ValueId> all_gather(Program& program, const AllGather& attributes, std::string label,
                                std::span<const ValueId> x, const RankGroup& group, const std::optional<Shape>& shape) {
  const Members members = members_of(program, all_gather_kind, attributes.ranks, group);
  expect_one_each(all_gather_kind, members, x);
  expect_equal_specs(program, all_gather_kind, members, x);
  OpCall call = call_of(all_gather_kind, attributes, Math{}, label, members, x);
  for (const ValueId id : x) {
    const std::int64_t elements = program.spec(id).shape.elements() * attributes.ranks;
    call.outputs.push_back(
        reserve_replicated(program, label, members, id, shape_of_result(all_gather_kind, elements, shape)));
  }
  return appended(program, std::move(call));
}

std::vector<ValueId> all_gather_in_place(Program& program, const AllGather& attributes, std::string label,
                                         std::span<const ValueId> whole, const RankGroup& group) {
  const Members members = members_of(program, all_gather_kind, attributes.ranks, group);
  expect_one_each(all_gather_kind, members, whole);
  expect_equal_specs(program, all_gather_kind, members, whole);
  expect_divisible(all_gather_kind, program.spec(whole[0]), attributes.ranks);
  OpCall call = call_of(all_gather_kind, attributes, Math{}, std::move(label), members, {});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    call.inputs.push_back(part_of_member(program, whole[i], members, members.held[i]));
    call.outputs.push_back(update_on(program, whole[i], members));
  }
  return appended(program, std::move(call));
}

std::vector<ValueId> reduce_scatter(Program& program, const ReduceScatter& attributes, const Math& math,
                                    std::string label, std::span<const ValueId> x, bool in_place,
                                    const RankGroup& group, const std::optional<Shape>& shape) {
  const Members members = members_of(program, reduce_scatter_kind, attributes.ranks, group);
  expect_one_each(reduce_scatter_kind, members, x);
  expect_equal_specs(program, reduce_scatter_kind, members, x);
  expect_float(reduce_scatter_kind, program.spec(x[0]));
  expect_divisible(reduce_scatter_kind, program.spec(x[0]), attributes.ranks);
  OpCall call = call_of(reduce_scatter_kind, attributes, math, label, members, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const TensorSpec spec = program.spec(x[i]);
    const int place = members.held[i];
    if (in_place) {
      call.outputs.push_back(update_on(program, part_of_member(program, x[i], members, place), members));
      continue;
    }
    std::vector<AxisSpread> spread = alike_on(members, spec);
    if (is_addend(spec, members) && members.across.size() == 1) {
      const auto after = std::find_if(spread.begin(), spread.end(),
                                      [&](const AxisSpread& one) { return one.mesh_axis > members.across[0]; });
      spread.insert(after, {AxisSpread::Kind::sharded, members.across[0], 0, place, attributes.ranks});
    }
    const Shape part = shape_of_result(reduce_scatter_kind, spec.shape.elements() / attributes.ranks, shape);
    call.outputs.push_back(reserve_on(program, label, spec, spec.placement.rank, part, std::move(spread)));
  }
  return appended(program, std::move(call));
}

std::vector<ValueId> broadcast(Program& program, const Broadcast& attributes, std::string label,
                               std::optional<ValueId> x, const TensorSpec& like, const RankGroup& group) {
  if (attributes.root < 0 || attributes.root >= attributes.ranks) {
    throw ProgramError("broadcast: root " + std::to_string(attributes.root) + " of " +
                       std::to_string(attributes.ranks) + " ranks; expected one of them");
  }
  const Members members = members_of(program, broadcast_kind, attributes.ranks, group);
  const TensorSpec spec = like;
  expect_on_rank(broadcast_kind, spec, members.group[attributes.root]);
  if (x.has_value() != program.holds(spec.placement.rank))
    throw ProgramError("broadcast: the root's tensor '" + spec.name +
                       "' must be given if, and only if, the program holds the root");
  OpCall call = call_of(broadcast_kind, attributes, Math{}, label, members, {});
  if (x) call.inputs = {*x};
  for (const int place : members.held)
    call.outputs.push_back(reserve_on(program, label, spec, members.group[place], spec.shape, alike_on(members, spec)));
  return appended(program, std::move(call));
}

std::vector<ValueId> broadcast(Program& program, const Broadcast& attributes, std::string label, ValueId x,
                               const RankGroup& group) {
  return broadcast(program, attributes, std::move(label), x, program.spec(x), group);
}

std::vector<ValueId> all_to_all(Program& program, const AllToAll& attributes, std::string label,
                                std::span<const ValueId> x, const RankGroup& group) {
  const Members members = members_of(program, all_to_all_kind, attributes.ranks, group);
  expect_one_each(all_to_all_kind, members, x);
  const auto square = static_cast<std::size_t>(attributes.ranks) * static_cast<std::size_t>(attributes.ranks);
  if (attributes.counts.size() != square || *std::min_element(attributes.counts.begin(), attributes.counts.end()) < 0) {
    throw ProgramError("all_to_all: " + std::to_string(attributes.counts.size()) + " counts for " +
                       std::to_string(attributes.ranks) + " ranks; expected one, not negative, for each pair");
  }
  OpCall call = call_of(all_to_all_kind, attributes, Math{}, label, members, x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const TensorSpec& spec = program.spec(x[i]);
    const int place = members.held[i];
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (int peer = 0; peer < attributes.ranks; ++peer) {
      sent += attributes.count(place, peer);
      received += attributes.count(peer, place);
    }
    expect_on_rank(all_to_all_kind, spec, members.group[place]);
    expect_dtype(all_to_all_kind, spec, program.spec(x[0]).dtype);
    expect_shape(all_to_all_kind, spec, Shape{sent});
    call.outputs.push_back(reserve_replicated(program, label, members, x[i], Shape{received}));
  }
  return appended(program, std::move(call));
}

int SendRecv::receiver(int member) const {
  const auto modulo = [](int number, int m) { return (number % m + m) % m; };
  if (round == 0) return modulo(member + shift, ranks);
  const int m = rounds_of_pairs(ranks);
  const int itself = modulo(round * ((m + 1) / 2), m);  // 2 * itself = round mod m, as m is odd
  if (member == m) return itself;                       // only if the number of ranks is even
  return member == itself && m < ranks ? m : modulo(round - member, m);
}

int SendRecv::sender(int member) const { return SendRecv{ranks, -shift, round}.receiver(member); }

std::optional<std::vector<int>> partners_of(const Program& program) {
  if (program.ops().size() != 1 || program.op(0).kind != send_recv_kind) return std::nullopt;
  const OpCall& call = program.op(0);
  const auto& attributes = call.attributes.as<SendRecv>();
  if (attributes.round == 0) return std::nullopt;
  std::vector<int> partners(static_cast<std::size_t>(attributes.ranks));
  for (int member = 0; member < attributes.ranks; ++member)
    partners[static_cast<std::size_t>(call.group[member])] = call.group[attributes.receiver(member)];
  return partners;
}

std::vector<ValueId> send_recv(Program& program, const SendRecv& attributes, std::string label,
                               std::span<const ValueId> x, const RankGroup& group) {
  const Members members = members_of(program, send_recv_kind, attributes.ranks, group);
  if (attributes.round < 0 || attributes.round > rounds_of_pairs(attributes.ranks))
    throw ProgramError("send_recv '" + label + "' has round " + std::to_string(attributes.round) + "; expected 1 to " +
                       std::to_string(rounds_of_pairs(attributes.ranks)) + ", or 0 for a ring");
  expect_one_each(send_recv_kind, members, x);
  expect_equal_specs(program, send_recv_kind, members, x);
  OpCall call = call_of(send_recv_kind, attributes, Math{}, label, members, x);
  for (const ValueId id : x)
    call.outputs.push_back(reserve_replicated(program, label, members, id, program.spec(id).shape));
  return appended(program, std::move(call));
}

}  // namespace gpubench
