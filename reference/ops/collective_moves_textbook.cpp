// The collectives that only move elements: exact, bitwise. One class for all of them; they differ in the source of an
// output's element.
#include <algorithm>
#include <array>
#include <cmath>

#include "reference/ops/collective.h"
#include "reference/ops/collective_textbook.h"
#include "reference/ops/definition.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

/// An element of an input.
struct Source {
  int input = 0;
  std::int64_t linear = 0;
};

/// How one moving collective differs from another.
struct MoveRules {
  OpKind kind;
  Source (*source)(const OpCall& call, std::span<const TensorView> inputs, int output, std::int64_t linear);
  Cost (*cost)(const CallSpecs& op);
  /// Appends the op whose results are the gradients of the inputs; null: there is no rule.
  std::vector<ValueId> (*backward)(Program& program, const OpCall& call, std::string label,
                                   std::span<const ValueId> incoming);
  bool all_alike;  ///< every rank ends up with the same
};

class MoveDefinition : public OpDefinition {
 public:
  explicit MoveDefinition(const MoveRules& rules) : rules_(rules) {}

  OpKind kind() const override { return rules_.kind; }
  Cost cost(const CallSpecs& op) const override { return rules_.cost(op); }
  CheckUnits units(const CallSpecs& op, int output) const override {
    CheckUnits units = element_units(op.output(output).shape, strided_read_flop);
    const int ranks = ranks_of(op.call);  // the ends of what one rank sent are where blocks may be cut wrongly
    for (int rank = 1; rank < ranks; ++rank) {
      const std::int64_t begin = units.count * rank / ranks;
      if (begin > 0 && begin < units.count) units.landmarks.insert(units.landmarks.end(), {begin - 1, begin});
    }
    std::sort(units.landmarks.begin(), units.landmarks.end());
    units.landmarks.erase(std::unique(units.landmarks.begin(), units.landmarks.end()), units.landmarks.end());
    return units;
  }
  std::string bound(const CallSpecs&, int) const override { return std::string(exact_bound); }
  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    expect_all_held(operands.call);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const Source from = rules_.source(operands.call, operands.inputs, output, wanted[i]);
      judged[i] = moved(operands.inputs[static_cast<std::size_t>(from.input)][from.linear]);
    }
  }
  std::vector<std::vector<int>> identical_outputs(const OpCall& call) const override {
    std::vector<int> group;
    if (rules_.all_alike) {
      for (int i = 0; i < static_cast<int>(call.outputs.size()); ++i) group.push_back(i);
    }
    return {group};
  }
  std::string explain(const Operands& operands, int output, std::span<const Mismatch> wrong) const override {
    const TensorSpec& y = operands.outputs[static_cast<std::size_t>(output)];
    const auto from = [&](std::int64_t linear) {
      return rules_.source(operands.call, operands.inputs, output, linear);
    };
    const auto element = [&](int input, std::int64_t linear) {
      const TensorView& x = operands.inputs[static_cast<std::size_t>(input)];
      return linear < 0 || linear >= x.shape().elements() ? std::nan("") : x[linear];
    };
    std::vector<FaultHypothesis> faults;
    const auto rank_of_input = [&](int input) {
      return "rank " + std::to_string(operands.inputs[static_cast<std::size_t>(input)].spec().placement.rank);
    };
    const std::string sender = rank_of_input(from(wrong[0].linear).input);
    for (const std::int64_t distance : {std::int64_t{1}, std::int64_t{-1}}) {
      faults.push_back(
          {sender + "'s block is misplaced by " + std::to_string(distance) + " element",
           [=](std::int64_t linear) { return element(from(linear).input, from(linear).linear + distance); }});
    }
    faults.push_back({sender + "'s block is stale", [=](std::int64_t linear) {
                        const Source at = from(linear);
                        const TensorView& x = operands.inputs[static_cast<std::size_t>(at.input)];
                        return element(at.input, x.shape().elements() - 1 - at.linear);
                      }});
    for (int input = 0; input < static_cast<int>(operands.inputs.size()); ++input) {
      faults.push_back({"what " + rank_of_input(input) + " sent is in the place of " + sender + "'s block",
                        [=](std::int64_t linear) {
                          return from(linear).input == input ? std::nan("") : element(input, from(linear).linear);
                        }});
    }
    return name_fault(faults, wrong, y.dtype, y.shape.elements(), ranks_of(operands.call));
  }
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    if (rules_.backward == nullptr) return OpDefinition::derivative(program, call, tape);
    const std::vector<ValueId> incoming = incoming_gradients(program, call, tape);
    const std::vector<ValueId> gradients = rules_.backward(program, call, tape.label(call, "backward"), incoming);
    for (std::size_t i = 0; i < call.inputs.size(); ++i) tape.contribute(call.inputs[i], gradients[i]);
  }

 private:
  MoveRules rules_;
};

Source gathered(const OpCall&, std::span<const TensorView> inputs, int, std::int64_t linear) {
  const std::int64_t each = inputs[0].shape().elements();
  return {static_cast<int>(linear / each), linear % each};
}

Source exchanged(const OpCall& call, std::span<const TensorView>, int output, std::int64_t linear) {
  const auto& attributes = call.attributes.as<AllToAll>();
  int sender = 0;
  while (linear >= attributes.count(sender, output)) linear -= attributes.count(sender++, output);
  for (int before = 0; before < output; ++before) linear += attributes.count(sender, before);
  return {sender, linear};
}

Source shifted(const OpCall& call, std::span<const TensorView>, int output, std::int64_t linear) {
  return {call.attributes.as<SendRecv>().sender(output), linear};
}

/// `message` bytes, of which `factor` are on the wire.
Cost move_cost(double message, double factor) { return {0.0, message * factor, message}; }

/// Elements that cross between ranks at the busiest of them: the most that one sends, or receives.
double most_crossing(const AllToAll& attributes) {
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
       [](const OpCall&, std::span<const TensorView>, int, std::int64_t linear) {
         return Source{0, linear};
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
         const double crossing = most_crossing(attributes) * bits_of(op.inputs[0].dtype) / 8.0;
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

std::span<const OpDefinition* const> collective_move_definitions() {
  static const std::array<const OpDefinition*, 4> all{&all_gather_definition(), &all_to_all_definition(),
                                                      &broadcast_definition(), &send_recv_definition()};
  return all;
}

// The diagnosis that all collectives share (collective_textbook.h).

namespace {

// Of what is wrong already: a hypothesis names the fault, and decides no verdict.
constexpr double nearly_all = 0.9;

bool predicts(const FaultHypothesis& hypothesis, std::span<const Mismatch> wrong, DType type) {
  std::int64_t right = 0;
  for (const Mismatch& one : wrong) {
    const double predicted = round_to(type, hypothesis.predict(one.linear));
    const double other_order = 2.0 * unit_roundoff(type) * std::fabs(predicted);
    if (std::fabs(one.got - predicted) <= other_order) ++right;
  }
  return static_cast<double>(right) >= nearly_all * static_cast<double>(wrong.size());
}

std::string part_text(std::span<const Mismatch> wrong, std::int64_t elements, int chunks) {
  const auto by_place = [](const Mismatch& a, const Mismatch& b) { return a.linear < b.linear; };
  const auto [first, last] = std::minmax_element(wrong.begin(), wrong.end(), by_place);
  const std::string range = first->linear == last->linear
                                ? "element " + std::to_string(first->linear)
                                : "elements " + std::to_string(first->linear) + " to " + std::to_string(last->linear);
  const auto chunk_of = [&](std::int64_t linear) { return linear * chunks / elements; };
  if (chunks < 2 || elements < chunks || chunk_of(first->linear) != chunk_of(last->linear)) return range;
  return "chunk " + std::to_string(chunk_of(first->linear)) + " of " + std::to_string(chunks) + " (" + range + ")";
}

}  // namespace

std::string name_fault(std::span<const FaultHypothesis> hypotheses, std::span<const Mismatch> wrong, DType type,
                       std::int64_t elements, int chunks) {
  if (wrong.empty()) return {};
  const std::string part = part_text(wrong, elements, chunks);
  for (const FaultHypothesis& hypothesis : hypotheses) {
    if (predicts(hypothesis, wrong, type)) return hypothesis.words + ", in " + part;
  }
  return "in " + part;
}

}  // namespace gpubench
