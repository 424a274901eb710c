// Collectives that move elements by counts that the program knows: exact, bitwise.
#include <algorithm>

#include "reference/ops/collective.h"
#include "reference/ops/collective_textbook.h"

namespace gpubench {
namespace {

using Source = MoveSource;

MoveSources gathered(const OpCall&, std::span<const TensorView> inputs, int) {
  return [each = inputs[0].shape().elements()](std::int64_t linear) {
    return Source{static_cast<int>(linear / each), linear % each};
  };
}

MoveSources exchanged(const OpCall& call, std::span<const TensorView>, int output) {
  return [&attributes = call.attributes.as<AllToAll>(), output](std::int64_t linear) {
    int sender = 0;
    while (linear >= attributes.count(sender, output)) linear -= attributes.count(sender++, output);
    for (int before = 0; before < output; ++before) linear += attributes.count(sender, before);
    return Source{sender, linear};
  };
}

MoveSources shifted(const OpCall& call, std::span<const TensorView>, int output) {
  return [sender = call.attributes.as<SendRecv>().sender(output)](std::int64_t linear) {
    return Source{sender, linear};
  };
}

/// The most elements that one rank sends to, or receives from, other ranks.
double max_crossing(const AllToAll& attributes) {
  std::int64_t most = 0;
  for (int rank = 0; rank < attributes.ranks; ++rank) {
    std::int64_t sent = 0;
    std::int64_t received = 0;
    for (int peer = 0; peer < attributes.ranks; ++peer) {
      if (peer == rank) continue;
      sent += attributes.count(rank, peer);
      received += attributes.count(peer, rank);
    }
    most = std::max({most, sent, received});
  }
  return static_cast<double>(most);
}

const MoveDefinition& all_gather_definition() {
  static const MoveDefinition definition(
      {all_gather_kind, gathered,
       [](const CallSpecs& op) {
         const double ranks = op.call.attributes.as<AllGather>().ranks;
         return move_cost(bytes_moved(op.outputs[0]), (ranks - 1.0) / ranks);
       },
       [](Program& program, const OpCall& call, std::string label, std::span<const ValueId> incoming) {
         return reduce_scatter(program, {call.attributes.as<AllGather>().ranks}, call.math, std::move(label), incoming,
                               false, call.group);
       },
       true});
  return definition;
}

const MoveDefinition& broadcast_definition() {
  static const MoveDefinition definition(
      {broadcast_kind,
       [](const OpCall&, std::span<const TensorView>, int) -> MoveSources {
         return [](std::int64_t linear) { return Source{0, linear}; };
       },
       [](const CallSpecs& op) { return move_cost(bytes_moved(op.inputs[0]), 1.0); },
       [](Program& program, const OpCall& call, std::string label, std::span<const ValueId> incoming) {
         const auto& attributes = call.attributes.as<Broadcast>();
         const auto sums =
             all_reduce(program, {attributes.ranks}, call.math, std::move(label), incoming, false, call.group);
         return std::vector<ValueId>{sums[static_cast<std::size_t>(attributes.root)]};
       },
       true});
  return definition;
}

const MoveDefinition& all_to_all_definition() {
  static const MoveDefinition definition(
      {all_to_all_kind, exchanged,
       [](const CallSpecs& op) {
         const auto& attributes = op.call.attributes.as<AllToAll>();
         double message = 0.0;
         for (const TensorSpec& x : op.inputs) message = std::max(message, bytes_moved(x));
         const double crossing = max_crossing(attributes) * bits_of(op.inputs[0].dtype) / 8.0;
         return Cost{0.0, crossing, message};
       },
       [](Program& program, const OpCall& call, std::string label, std::span<const ValueId> incoming) {
         AllToAll back = call.attributes.as<AllToAll>();
         for (int from = 0; from < back.ranks; ++from) {
           for (int to = 0; to < back.ranks; ++to) {
             back.counts[static_cast<std::size_t>(to * back.ranks + from)] =
                 call.attributes.as<AllToAll>().count(from, to);
           }
         }
         return all_to_all(program, back, std::move(label), incoming, call.group);
       },
       false});
  return definition;
}

const MoveDefinition& send_recv_definition() {
  static const MoveDefinition definition(
      {send_recv_kind, shifted, [](const CallSpecs& op) { return move_cost(bytes_moved(op.inputs[0]), 1.0); },
       [](Program& program, const OpCall& call, std::string label, std::span<const ValueId> incoming) {
         SendRecv back = call.attributes.as<SendRecv>();
         back.shift = -back.shift;
         return send_recv(program, back, std::move(label), incoming, call.group);
       },
       false});
  return definition;
}

}  // namespace

Definitions collective_moves_definitions() {
  return {&all_gather_definition(), &all_to_all_definition(), &broadcast_definition(), &send_recv_definition()};
}

}  // namespace gpubench
