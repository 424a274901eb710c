// What the textbooks of collectives share: those that only move elements, whichever they move; and finding, from a
// wrong result, which rank and which part of the message went wrong.
//
// Each kind of fault (a contribution that is missing, doubled, old, from elsewhere) predicts every wrong element from
// the inputs. Where one kind predicts nearly all of them, it is named; chance explains a few elements, never all.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reference/ops/definition.h"

namespace gpubench {

/// Where an element of an output comes from: an element of an input, or nowhere (input -1), and is 0.
struct MoveSource {
  int input = 0;
  std::int64_t linear = 0;
};
/// By element of one output.
using MoveSources = std::function<MoveSource(std::int64_t linear)>;

/// How one collective that moves elements differs from another.
struct MoveRules {
  OpKind kind;
  MoveSources (*sources)(const OpCall& call, std::span<const TensorView> inputs, int output);
  Cost (*cost)(const CallSpecs& op);
  /// Appends the op whose results are the gradients of the inputs; null: there is no rule.
  std::vector<ValueId> (*backward)(Program& program, const OpCall& call, std::string label,
                                   std::span<const ValueId> incoming);
  bool all_alike;          ///< every rank ends up with the same
  int inputs_of_rank = 1;  ///< what is moved, and then what says how
};

/// `message` bytes, of which `factor` are on the wire.
[[nodiscard]] inline Cost move_cost(double message, double factor) { return {0.0, message * factor, message}; }

/// Exact, bitwise.
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

/// One kind of fault: what it would have left in element `linear`; NaN where it predicts nothing.
struct FaultHypothesis {
  std::string words;  ///< "rank 1's contribution is missing"
  std::function<double(std::int64_t linear)> predict;
};

/// The words of the first hypothesis that predicts at least nine in ten of the wrong elements, and which part of the
/// output they are in: "rank 1's contribution is missing, in chunk 2 of 4 (elements 512 to 767)". Without such a
/// hypothesis only the part; empty for no wrong elements. `chunks`: how many equal parts the output falls into.
[[nodiscard]] std::string name_fault(std::span<const FaultHypothesis> hypotheses, std::span<const Mismatch> wrong,
                                     DType type, std::int64_t elements, int chunks);

}  // namespace gpubench
