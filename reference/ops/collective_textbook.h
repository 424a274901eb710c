// Shared by the textbooks of collectives: the definition of those that only move elements, and the diagnosis of wrong
// results (which rank, which part of the message).
// Each hypothesis (a contribution missing, doubled, stale, misplaced) predicts every wrong element from the inputs.
// One that predicts nearly all of them is named; chance predicts a few at most.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reference/ops/definition.h"

namespace gpubench {

/// Source of an output's element: an element of an input; input -1: the constant 0.
struct MoveSource {
  int input = 0;
  std::int64_t linear = 0;
};
using MoveSources = std::function<MoveSource(std::int64_t linear)>;

struct MoveRules {
  OpKind kind;
  MoveSources (*sources)(const OpCall& call, std::span<const TensorView> inputs, int output);
  Cost (*cost)(const CallSpecs& op);
  /// Appends the gradients of the inputs; null: no derivative.
  std::vector<ValueId> (*backward)(Program& program, const OpCall& call, std::string label,
                                   std::span<const ValueId> incoming);
  bool all_alike;          ///< every rank gets the same result
  int inputs_of_rank = 1;  ///< the moved tensor, then those that describe the move
};

[[nodiscard]] inline Cost move_cost(double message, double factor) { return {0.0, message * factor, message}; }

class MoveDefinition : public OpDefinition {
 public:
  explicit MoveDefinition(const MoveRules& rules) : rules_(rules) {}

  OpKind kind() const override { return rules_.kind; }
  Cost cost(const CallSpecs& op) const override { return rules_.cost(op); }
  CheckUnits units(const CallSpecs& op, int output) const override;
  std::string bound(const CallSpecs& op, int output) const override;
  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override;
  std::vector<std::vector<int>> identical_outputs(const OpCall& call) const override;
  std::string explain(const Operands& operands, int output, std::span<const Mismatch> wrong) const override;
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override;

 private:
  MoveRules rules_;
};

/// A kind of fault, and its prediction for element `linear`; NaN: none.
struct FaultHypothesis {
  std::string words;  ///< "rank 1's contribution is missing"
  std::function<double(std::int64_t linear)> predict;
};

/// The first hypothesis that predicts at least 90% of the wrong elements, and their part of the output: "rank 1's
/// contribution is missing, in chunk 2 of 4 (elements 512 to 767)". Without such a hypothesis only the part; empty if
/// nothing is wrong. `chunks`: equal parts of the output.
[[nodiscard]] std::string name_fault(std::span<const FaultHypothesis> hypotheses, std::span<const Mismatch> wrong,
                                     DType type, std::int64_t elements, int chunks);

}  // namespace gpubench
