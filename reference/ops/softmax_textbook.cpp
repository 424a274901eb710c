// Rows are judged whole; shared_textbook.h derives the bound.
#include "reference/ops/shared_textbook.h"

#include <algorithm>
#include <cmath>

#include "reference/ops/range_data.h"
#include "reference/ops/softmax.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {

void judge_softmax(std::span<const double> x, double u, double tiny, std::span<Expected> y) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0.0;
  double weighted = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double e = std::exp(x[i] - largest);
    y[i].value = e;
    sum += e;
    if (e > 0.0) weighted += e * exp_error(largest - x[i], u);
  }
  const double of_sum = weighted / sum + u * (2.0 * std::sqrt(static_cast<double>(x.size())) + 2.0);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double value = y[i].value / sum;
    y[i] = {value, (value > 0.0 ? value * (exp_error(largest - x[i], u) + of_sum) : 0.0) + tiny};
  }
}

std::string softmax_rule(std::int64_t n, const Math& math) {
  return "u y (2 (m - x) + sum y (2 (m - x) + 6) + 2 sqrt(" + std::to_string(n) + ") + 8) + " + flushed_text(math);
}

namespace {

class SoftmaxForward final : public DefinitionOf<softmax_forward_kind> {
 public:
  // Per element: maximum, difference, exp, sum, quotient.
  Cost cost(const CallSpecs& op) const override { return {5.0 * elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int) const override {
    return norm_row_units(op.inputs[0].shape, op.inputs[0].shape[-1], 24.0);  // an exp counts as sixteen
  }

  std::string bound(const CallSpecs& op, int) const override {
    return bound_text(softmax_rule(op.inputs[0].shape[-1], op.call.math), op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    std::vector<double> x(static_cast<std::size_t>(operands.inputs[0].shape()[-1]));
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.inputs[0].read(wanted[i] * static_cast<std::int64_t>(x.size()), x);
      judge_softmax(x, accumulator_roundoff(operands.call.math), smallest_normal(operands.call.math.accumulate),
                    judged.subspan(i * x.size(), x.size()));
    }
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    return rows_far_from_zero(op.inputs[0]);
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const auto dy = incoming_gradient(call, tape, call.outputs[0]);
    const ValueId x = call.inputs[0];
    if (!dy || !tape.wanted(x)) return;
    tape.contribute(x, softmax_backward(program, call.math, tape.label(call, "backward"), call.outputs[0], *dy));
  }
};

// With D = sum y dy: T = |y| (T(D) + 3 u |dy - D|) + u |dx|.
class SoftmaxBackward final : public DefinitionOf<softmax_backward_kind> {
 public:
  // Per element: product and sum, difference, product.
  Cost cost(const CallSpecs& op) const override { return {4.0 * elements_of(op.inputs[0]), op.bytes()}; }

  CheckUnits units(const CallSpecs& op, int) const override {
    return norm_row_units(op.inputs[0].shape, op.inputs[0].shape[-1], 12.0);
  }

  std::string bound(const CallSpecs& op, int) const override {
    return bound_text("|y| (T + 3 u |dy - D|) + u |dx|, D = sum y dy, T = " + sum_error_text(op.inputs[0].shape[-1]),
                      op.call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    const double u = accumulator_roundoff(operands.call.math);
    std::vector<double> y(static_cast<std::size_t>(operands.inputs[0].shape()[-1])), dy(y.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::int64_t first = wanted[i] * static_cast<std::int64_t>(y.size());
      operands.inputs[0].read(first, y);
      operands.inputs[1].read(first, dy);
      const ProductSum sum = wide_dot(y, dy);
      const double of_sum = sum_error_bound(sum, u);
      for (std::size_t j = 0; j < y.size(); ++j) {
        const double difference = dy[j] - sum.value;
        const double dx = y[j] * difference;
        judged[i * y.size() + j] = {dx,
                                    std::fabs(y[j]) * (of_sum + 3.0 * u * std::fabs(difference)) + u * std::fabs(dx)};
      }
    }
  }
};

}  // namespace

Definitions softmax_definitions() { return definitions_of<SoftmaxBackward, SoftmaxForward>(); }

}  // namespace gpubench
