#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "reference/ops/bound_text.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/gradient_tape.h"
#include "reference/ops/softmax_rows.h"
#include "reference/ops/sum_error_bound.h"
#include "reference/ops/textbooks.h"
#include "reference/ops/wanted_elements.h"

namespace gpubench {
namespace {

/// Throws ProgramError where a gradient flows into an output: the loss is where a backward pass begins.
void expect_loss_as_seed(const OpCall& call, const GradientTape& tape) {
  if (std::any_of(call.outputs.begin(), call.outputs.end(), [&](ValueId output) { return tape.of(output); })) {
    throw ProgramError(std::string(call.kind.name) + ": op '" + call.label +
                       "' has a gradient flowing into its outputs; expected its loss to be the seed");
  }
}

/// Outputs 0 and 1: loss and lse.
void judge_loss(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) {
  if (output == 0) {
    std::fill(judged.begin(), judged.end(), judge_mean_loss(operands));
    return;
  }
  std::vector<double> x(static_cast<std::size_t>(operands.inputs[0].shape()[1]));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    operands.inputs[0].read(wanted[i] * static_cast<std::int64_t>(x.size()), x);
    judged[i] = judge_log_sum_exp(x, accumulator_roundoff(operands.call.math));
  }
}

class CrossEntropyForwardDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return cross_entropy_forward_kind; }

  // Per logit: maximum, difference, exp, sum.
  Cost cost(const CallSpecs& op) const override { return {4.0 * elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    return loss_units(op.inputs[0].shape, op.output(output).shape, output);
  }

  std::string bound(const CallSpecs& op, int output) const override {
    return output == 0 ? mean_loss_bound(op.inputs[0].shape, op.call.math)
                       : log_sum_exp_bound(op.inputs[0].shape, op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    judge_loss(operands, output, wanted, judged);
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const ValueId logits = call.inputs[0];
    expect_loss_as_seed(call, tape);
    if (!tape.is_loss(call.outputs[0]) || !tape.wanted(logits)) return;
    tape.contribute(logits, cross_entropy_backward(program, call.math, tape.label(call, "backward"), logits,
                                                   call.inputs[1], call.outputs[1]));
  }
};

std::string gradient_rule(const OpCall& call, const Shape& logits, const std::string& of_p) {
  return bound_text("(p " + of_p + " + 2 u max(p, 1 if label)) / " + std::to_string(logits[0]) + " + u |dx| + " +
                        power_text(smallest_normal(call.math.accumulate)),
                    call.math);
}

class CrossEntropyBackwardDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return cross_entropy_backward_kind; }

  // Per logit: difference, exp, product with 1 / rows.
  Cost cost(const CallSpecs& op) const override { return {3.0 * elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int) const override { return element_units(op.outputs[0].shape, 20.0); }

  std::string bound(const CallSpecs& op, int) const override {
    return gradient_rule(op.call, op.inputs[0].shape, "u (2|x - lse| + 6)");
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const TensorView& lse = operands.inputs[2];
    const std::int64_t classes = operands.inputs[0].shape()[1];
    std::int64_t index = -1;
    SoftmaxRow row;
    judge_elements<1>({operands.inputs[0]}, wanted, judged, [&](std::int64_t element, const auto& in) {
      if (element / classes != index) {
        index = element / classes;
        row = softmax_row(operands, index);
        row.lse = row.label >= 0 && row.label < classes ? lse[index] : std::numeric_limits<double>::quiet_NaN();
      }
      return judge_gradient(row, in[0], element % classes);
    });
  }
};

// The lse that the gradient is made with need not be the one that is stored: it may have been rounded or not, and lies
// within T(lse) and one rounding of the true one. A gradient is judged with the whole of its row.
class CrossEntropyForwardBackwardDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return cross_entropy_forward_backward_kind; }

  // The work of the two ops; the bytes of both, but for one reading of logits, labels and lse.
  Cost cost(const CallSpecs& op) const override { return {7.0 * elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int output) const override {
    const Shape& logits = op.inputs[0].shape;
    if (output < 2) return loss_units(logits, op.output(output).shape, output);
    return {logits[0], logits[1], 40.0 * static_cast<double>(logits[1]), {0, logits[0] - 1}};
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const Shape& logits = op.inputs[0].shape;
    if (output == 0) return mean_loss_bound(logits, op.call.math);
    if (output == 1) return log_sum_exp_bound(logits, op.call.math);
    const std::string rounding = power_text(unit_roundoff(op.outputs[1].dtype)) + " |lse|";
    return gradient_rule(op.call, logits, "(e^(T(lse) + " + rounding + ") (1 + u (2|x - lse| + 6)) - 1)");
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (output < 2) {
      judge_loss(operands, output, wanted, judged);
      return;
    }
    const std::int64_t classes = operands.inputs[0].shape()[1];
    std::vector<double> x(static_cast<std::size_t>(classes));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.inputs[0].read(wanted[i] * classes, x);
      SoftmaxRow row = softmax_row(operands, wanted[i]);
      const Expected lse = judge_log_sum_exp(x, row.u);
      row.lse = row.label >= 0 && row.label < classes ? lse.value : std::numeric_limits<double>::quiet_NaN();
      row.lse_error = lse.bound + unit_roundoff(operands.outputs[1].dtype) * std::fabs(lse.value);
      for (std::size_t j = 0; j < x.size(); ++j) {
        judged[i * x.size() + j] = judge_gradient(row, x[j], static_cast<std::int64_t>(j));
      }
    }
  }

  // It has been computed already.
  void derivative(Program&, const OpCall& call, GradientTape& tape) const override {
    expect_loss_as_seed(call, tape);
    if (!tape.is_loss(call.outputs[0]) || !tape.wanted(call.inputs[0])) return;
    tape.contribute(call.inputs[0], call.outputs[2]);
  }
};

}  // namespace

std::span<const OpDefinition* const> cross_entropy_definitions() {
  return definitions_of<CrossEntropyForwardDefinition, CrossEntropyBackwardDefinition,
                        CrossEntropyForwardBackwardDefinition>();
}

}  // namespace gpubench
