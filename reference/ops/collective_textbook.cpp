#include "reference/ops/collective_textbook.h"

#include <algorithm>
#include <cmath>

#include "reference/ops/collective.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {

CheckUnits MoveDefinition::units(const CallSpecs& op, int output) const {
  CheckUnits units = element_units(op.output(output).shape, strided_read_flop);
  const int ranks = ranks_of(op.call);  // faulty block borders show at the ends of a rank's part
  for (int rank = 1; rank < ranks; ++rank) {
    const std::int64_t begin = units.count * rank / ranks;
    if (begin > 0 && begin < units.count) units.landmarks.insert(units.landmarks.end(), {begin - 1, begin});
  }
  std::sort(units.landmarks.begin(), units.landmarks.end());
  units.landmarks.erase(std::unique(units.landmarks.begin(), units.landmarks.end()), units.landmarks.end());
  return units;
}

std::string MoveDefinition::bound(const CallSpecs&, int) const { return std::string(exact_bound); }

void MoveDefinition::evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                              std::span<Expected> judged) const {
  expect_all_held(operands.call);
  const MoveSources sources = rules_.sources(operands.call, operands.inputs, output);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const MoveSource from = sources(wanted[i]);
    judged[i] = moved(from.input < 0 ? 0.0 : operands.inputs[static_cast<std::size_t>(from.input)][from.linear]);
  }
}

std::vector<std::vector<int>> MoveDefinition::identical_outputs(const OpCall& call) const {
  std::vector<int> group;
  if (rules_.all_alike) {
    for (int i = 0; i < static_cast<int>(call.outputs.size()); ++i) group.push_back(i);
  }
  return {group};
}

std::string MoveDefinition::explain(const Operands& operands, int output, std::span<const Mismatch> wrong) const {
  const TensorSpec& y = operands.outputs[static_cast<std::size_t>(output)];
  const MoveSources from = rules_.sources(operands.call, operands.inputs, output);
  const auto element = [&](int input, std::int64_t linear) {
    if (input < 0) return std::nan("");
    const TensorView& x = operands.inputs[static_cast<std::size_t>(input)];
    return linear < 0 || linear >= x.shape().elements() ? std::nan("") : x[linear];
  };
  std::vector<FaultHypothesis> faults;
  const auto rank_of_input = [&](int input) {
    return "rank " + std::to_string(operands.inputs[static_cast<std::size_t>(input)].spec().placement.rank);
  };
  const int sent = from(wrong[0].linear).input;
  const std::string sender = sent < 0 ? "nobody" : rank_of_input(sent);
  for (const std::int64_t distance : {std::int64_t{1}, std::int64_t{-1}}) {
    faults.push_back(
        {sender + "'s block is misplaced by " + std::to_string(distance) + " element",
         [=](std::int64_t linear) { return element(from(linear).input, from(linear).linear + distance); }});
  }
  faults.push_back({sender + "'s block is stale", [=](std::int64_t linear) {
                      const MoveSource at = from(linear);
                      if (at.input < 0) return std::nan("");
                      const TensorView& x = operands.inputs[static_cast<std::size_t>(at.input)];
                      return element(at.input, x.shape().elements() - 1 - at.linear);
                    }});
  for (int input = 0; input < static_cast<int>(operands.inputs.size()); input += rules_.inputs_of_rank) {
    faults.push_back(
        {"what " + rank_of_input(input) + " sent is in the place of " + sender + "'s block", [=](std::int64_t linear) {
           return from(linear).input == input ? std::nan("") : element(input, from(linear).linear);
         }});
  }
  return name_fault(faults, wrong, y.dtype, y.shape.elements(), ranks_of(operands.call));
}

void MoveDefinition::derivative(Program& program, const OpCall& call, GradientTape& tape) const {
  if (rules_.backward == nullptr) return OpDefinition::derivative(program, call, tape);
  const std::vector<ValueId> incoming = incoming_gradients(program, call, tape);
  const std::vector<ValueId> gradients = rules_.backward(program, call, tape.label(call, "backward"), incoming);
  for (std::size_t i = 0; i < call.inputs.size(); ++i) tape.contribute(call.inputs[i], gradients[i]);
}

namespace {

// Hypotheses describe results that are already wrong; they do not affect the verdict.
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
