// Moves are exact, bit for bit.
#include <utility>

#include "reference/ops/bias_gradient.h"
#include "reference/ops/definition.h"
#include "reference/ops/move.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

template <const OpKind& op_kind>
class SameElements : public DefinitionOf<op_kind> {
 public:
  Cost cost(const CallSpecs& op) const override { return {0.0, op.bytes()}; }
  CheckUnits units(const CallSpecs& op, int) const override { return element_units(op.outputs[0].shape, 4.0); }
  std::string bound(const CallSpecs&, int) const override { return std::string(exact_bound); }
  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    judge_elements<1>({operands.inputs[0]}, wanted, judged, [](std::int64_t, const auto& in) { return moved(in[0]); });
  }
};

class CopyDefinition : public SameElements<copy_kind> {
 public:
  void derivative(Program&, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    if (dy && tape.wanted(call.inputs[0])) tape.contribute(call.inputs[0], *dy);
  }
};

class ReorderDefinition : public SameElements<reorder_kind> {
 public:
  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.inputs[0];
    if (!dy || !tape.wanted(x)) return;
    const TensorSpec spec = program.spec(x);
    const std::string label = tape.label(call, "backward");
    if (program.value(x).part_of && !spec.layout.is_row_major(spec.shape)) {
      const ValueId dx = tape.destination(x);
      reorder_into(program, label, *dy, dx);
      return tape.contribute(x, dx);
    }
    tape.contribute(x, reorder(program, spec.layout, label, *dy));
  }
};

class RepeatRowsDefinition : public SameElements<repeat_rows_kind> {
 public:
  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const Shape& y = operands.outputs[0].shape;
    const std::int64_t n = y[-1], count = y.elements() / operands.inputs[0].shape().elements();
    for (std::size_t i = 0; i < wanted.size(); ++i)
      judged[i] = moved(operands.inputs[0][wanted[i] / (n * count) * n + wanted[i] % n]);
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.inputs[0];
    if (!dy || !tape.wanted(x)) return;
    tape.contribute(x, column_sum(program, call.math, tape.label(call, "backward"), *dy, tape.destination(x)));
  }
};

class TransposeDefinition : public SameElements<transpose_kind> {
 public:
  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const std::vector<int>& permutation = operands.call.attributes.as<Transpose>().permutation;
    const Shape& y = operands.outputs[0].shape;
    std::vector<std::int64_t> index(permutation.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      std::int64_t rest = wanted[i];
      for (int axis = y.rank() - 1; axis >= 0; --axis) {
        index[static_cast<std::size_t>(permutation[static_cast<std::size_t>(axis)])] = rest % y[axis];
        rest /= y[axis];
      }
      judged[i] = moved(operands.inputs[0].at(index));
    }
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.inputs[0];
    if (!dy || !tape.wanted(x)) return;
    const std::vector<int>& permutation = call.attributes.as<Transpose>().permutation;
    std::vector<int> inverse(permutation.size());
    for (std::size_t axis = 0; axis < permutation.size(); ++axis) {
      inverse[static_cast<std::size_t>(permutation[axis])] = static_cast<int>(axis);
    }
    tape.contribute(x, transpose(program, {std::move(inverse)}, tape.label(call, "backward"), *dy));
  }
};

}  // namespace

Definitions move_definitions() {
  return definitions_of<CopyDefinition, ReorderDefinition, RepeatRowsDefinition, TransposeDefinition>();
}

}  // namespace gpubench
