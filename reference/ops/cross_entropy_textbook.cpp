// Bounds: positive terms, so relative errors do not grow; exp within three ulps (OpenCL's table); the exponent x - m is
// rounded relative to |x - m|. A label outside the classes has no right answer: its loss is NaN, which nothing passes.
#include "reference/ops/cross_entropy_textbook.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/ops/bound_text.h"
#include "reference/ops/bytes_moved.h"
#include "reference/ops/cross_entropy.h"
#include "reference/ops/gradient_tape.h"
#include "reference/ops/rule_g.h"
#include "reference/ops/wanted_elements.h"

namespace gpubench {
namespace {

// log sum exp of one row: with D = m - x >= 0 and w = sum p 2uD, T = w + u (2 sqrt(N) + 6 + 2|ln sum| + 2|lse|).
Judged log_sum_exp(std::span<const double> x, double u) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0.0;
  double weighted = 0.0;
  for (const double logit : x) {
    const double e = std::exp(logit - largest);
    sum += e;
    if (e > 0.0) weighted += e * (largest - logit);
  }
  const double log_sum = std::log(sum);
  const double lse = largest + log_sum;
  const double terms = static_cast<double>(x.size());
  const double bound =
      2.0 * u * weighted / sum + u * (2.0 * std::sqrt(terms) + 6.0 + 2.0 * std::fabs(log_sum) + 2.0 * std::fabs(lse));
  return {lse, bound};
}

std::int64_t label_of(const TensorView& labels, std::int64_t row) { return static_cast<std::int64_t>(labels[row]); }

class CrossEntropyForwardDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return cross_entropy_forward_kind; }

  // Per logit: maximum, difference, exp, sum.
  Cost cost(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override {
    return {4.0 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs) + bytes_moved(outputs)};
  }

  Units units(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
              int output) const override {
    const double row = 20.0 * static_cast<double>(inputs[0].shape[1]);  // an exp counts for sixteen
    const double rows = static_cast<double>(inputs[0].shape[0]);
    return element_units(outputs[static_cast<std::size_t>(output)].shape, output == 0 ? row * rows : row);
  }

  std::string bound(const OpCall& call, std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                    int output) const override {
    const std::string classes = std::to_string(inputs[0].shape[1]);
    const std::string rows = std::to_string(inputs[0].shape[0]);
    // m: the largest logit of the row; p: its probabilities.
    const std::string lse = "u (2 sum p (m - x) + 2 sqrt(" + classes + ") + 6 + 2|lse - m| + 2|lse|)";
    if (output == 1) return bound_text(lse, call.math);
    const std::string mean = "(sum T + " + rule_g_formula(inputs[0].shape[0]) + ") / " + rows + " + u |loss|";
    return bound_text(mean + ", T = 2 u |x_label| + " + lse, call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    if (output == 0) {
      std::fill(judged.begin(), judged.end(), mean_loss(operands));
      return;
    }
    std::vector<double> x(static_cast<std::size_t>(operands.inputs[0].shape()[1]));
    for (std::size_t i = 0; i < wanted.size(); ++i) judged[i] = row_of(operands, wanted[i], x);
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override {
    const ValueId logits = call.inputs[0];
    if (tape.of(call.outputs[0]) || tape.of(call.outputs[1])) {
      throw ProgramError("cross_entropy_forward: op '" + call.label +
                         "' has a gradient flowing into its outputs; expected its loss to be the seed");
    }
    if (!tape.is_loss(call.outputs[0]) || !tape.wanted(logits)) return;
    tape.contribute(logits, cross_entropy_backward(program, call.math, tape.label(call, "backward"), logits,
                                                   call.inputs[1], call.outputs[1]));
  }

 private:
  static Judged row_of(const Operands& operands, std::int64_t row, std::span<double> x) {
    operands.inputs[0].read(row * static_cast<std::int64_t>(x.size()), x);
    return log_sum_exp(x, accumulator_roundoff(operands.call.math));
  }

  // Per row T(lse) + 2u|x_target|; their mean, and Rule G for the sum over rows.
  static Judged mean_loss(const Operands& operands) {
    const double u = accumulator_roundoff(operands.call.math);
    const std::int64_t rows = operands.inputs[0].shape()[0];
    std::vector<double> x(static_cast<std::size_t>(operands.inputs[0].shape()[1]));
    ProductSum losses;
    double bounds = 0.0;
    for (std::int64_t row = 0; row < rows; ++row) {
      const Judged lse = row_of(operands, row, x);
      const std::int64_t label = label_of(operands.inputs[1], row);
      const bool valid = label >= 0 && label < static_cast<std::int64_t>(x.size());
      const double target = valid ? x[static_cast<std::size_t>(label)] : std::numeric_limits<double>::quiet_NaN();
      losses.add(lse.value - target);
      bounds += lse.bound + 2.0 * u * std::fabs(target);
    }
    const double count = static_cast<double>(rows);
    const double mean = losses.value / count;
    return {mean, (bounds + rule_g(losses, u)) / count + u * std::fabs(mean)};
  }
};

class CrossEntropyBackwardDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return cross_entropy_backward_kind; }

  // Per logit: difference, exp, product with 1 / rows.
  Cost cost(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override {
    return {3.0 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs) + bytes_moved(outputs)};
  }

  Units units(const OpCall&, std::span<const TensorSpec>, std::span<const TensorSpec> outputs, int) const override {
    return element_units(outputs[0].shape, 20.0);
  }

  std::string bound(const OpCall& call, std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                    int) const override {
    const std::string rows = std::to_string(inputs[0].shape[0]);
    const std::string rule = "u (p (2|x - lse| + 6) + 2 max(p, 1 if label)) / " + rows + " + u |dx| + ";
    return bound_text(rule + power_text(smallest_normal(call.math.accumulate)), call.math);
  }

  void evaluate(const Operands& operands, int, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    const TensorView& labels = operands.inputs[1];
    const TensorView& lse = operands.inputs[2];
    const std::int64_t classes = operands.inputs[0].shape()[1];
    Row row{static_cast<double>(operands.inputs[0].shape()[0]),
            accumulator_roundoff(operands.call.math),
            smallest_normal(operands.call.math.accumulate),
            -1,
            0.0,
            -1};
    judge_elements<1>({operands.inputs[0]}, wanted, judged, [&](std::int64_t element, const auto& in) {
      if (element / classes != row.index) {
        row.index = element / classes;
        row.lse = lse[row.index];
        row.label = label_of(labels, row.index);
        if (row.label < 0 || row.label >= classes) row.lse = std::numeric_limits<double>::quiet_NaN();
      }
      return gradient(row, in[0], element % classes == row.label);
    });
  }

 private:
  struct Row {
    double rows, u, tiny;
    std::int64_t index;
    double lse;
    std::int64_t label;
  };

  // The log-sum-exp is read as given, so p carries the errors of one difference and one exp only: 2|x - lse| + 6 ulps.
  // Then the difference with the label and the product with 1 / rows. `tiny`: an exp may flush what is subnormal.
  static Judged gradient(const Row& row, double x, bool is_label) {
    const double exponent = x - row.lse;
    const double p = std::exp(exponent);
    const double one = is_label ? 1.0 : 0.0;
    const double value = (p - one) / row.rows;
    const double p_bound = p > 0.0 ? p * row.u * (2.0 * std::fabs(exponent) + 6.0) : 0.0;
    const double bound = (p_bound + 2.0 * row.u * std::max(p, one)) / row.rows + row.u * std::fabs(value);
    return {value, bound + row.tiny};
  }
};

}  // namespace

const OpDefinition& cross_entropy_forward_definition() {
  static const CrossEntropyForwardDefinition definition;
  return definition;
}

const OpDefinition& cross_entropy_backward_definition() {
  static const CrossEntropyBackwardDefinition definition;
  return definition;
}

}  // namespace gpubench
