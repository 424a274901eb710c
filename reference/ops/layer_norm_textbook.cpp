// Rows are judged whole, column sums element by element. The bounds stay finite and honest for rows without variance,
// where an epsilon at the wrong place shows.
#include "reference/ops/layer_norm_textbook.h"

#include <cmath>

#include "reference/ops/bound_text.h"
#include "reference/ops/bytes_moved.h"
#include "reference/ops/dot.h"
#include "reference/ops/incoming_gradient.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/normalized_rows.h"
#include "reference/ops/wanted_elements.h"

namespace gpubench {
namespace {

// The outputs of the forward, in their order.
constexpr NormalizedOutput normalized_outputs[] = {NormalizedOutput::y, NormalizedOutput::mean, NormalizedOutput::rstd};

std::int64_t norm_rows(const Shape& x) { return x.elements() / x[-1]; }

class LayerNormForwardDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return layer_norm_forward_kind; }

  Cost cost(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override {
    return {8.0 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs) + bytes_moved(outputs)};
  }

  Units units(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
              int output) const override {
    return output == 0 ? norm_row_units(inputs[0].shape, inputs[0].shape[-1], 20.0)
                       : norm_row_units(inputs[0].shape, 1, 6.0);
  }

  std::string bound(const OpCall& call, std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                    int output) const override {
    return normalized_bound(normalized_outputs[static_cast<std::size_t>(output)], inputs[0].shape[-1], call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    const std::int64_t n = operands.inputs[0].shape()[-1];
    const double epsilon = operands.call.attributes.as<LayerNorm>().epsilon;
    const double u = accumulator_roundoff(operands.call.math);
    std::vector<double> x(static_cast<std::size_t>(n));
    std::vector<double> gamma(x.size());
    std::vector<double> beta(x.size());
    operands.inputs[1].read(0, gamma);
    operands.inputs[2].read(0, beta);
    const std::size_t size = output == 0 ? x.size() : 1;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.inputs[0].read(wanted[i] * n, x);
      judge_normalized(normalized_outputs[static_cast<std::size_t>(output)], {x, gamma, beta, epsilon, u},
                       judged.subspan(i * size, size));
    }
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override;
};

void LayerNormForwardDefinition::derivative(Program& program, const OpCall& call, GradientTape& tape) const {
  refuse_gradient_of_statistics(call, tape, call.outputs[1], call.outputs[2]);
  const auto dy = incoming_gradient(call, tape, call.outputs[0]);
  if (!dy) return;
  const LayerNormBackward gradients =
      layer_norm_backward(program, call.attributes.as<LayerNorm>(), call.math, tape.label(call, "backward"), *dy,
                          call.inputs[0], call.inputs[1], call.outputs[1], call.outputs[2]);
  if (tape.wanted(call.inputs[0])) tape.contribute(call.inputs[0], gradients.dx);
  if (tape.wanted(call.inputs[1])) tape.contribute(call.inputs[1], gradients.dgamma);
  if (tape.wanted(call.inputs[2])) tape.contribute(call.inputs[2], gradients.dbeta);
}

// T of a sum whose terms are products of a few rounded factors: Rule G, and three roundings per term.
double sum_bound(const ProductSum& sum, double u) {
  return u * (2.0 * std::sqrt(sum.terms) + 3.0) * partial_sum_size(sum);
}

class LayerNormBackwardDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return layer_norm_backward_kind; }

  Cost cost(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override {
    return {14.0 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs) + bytes_moved(outputs)};
  }

  Units units(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs,
              int output) const override {
    const Shape& x = inputs[1].shape;
    if (output == 0) return norm_row_units(x, x[-1], 30.0);
    return element_units(outputs[static_cast<std::size_t>(output)].shape, 8.0 * static_cast<double>(norm_rows(x)));
  }

  std::string bound(const OpCall& call, std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                    int output) const override {
    const Shape& x = inputs[1].shape;
    if (output == 2) return sum_error_bound_text(norm_rows(x), call.math);
    const auto sum = [](std::int64_t terms) {
      return "u (2 sqrt(" + std::to_string(terms) + ") + 3) " + std::string(partial_sum_text);
    };
    if (output == 1) return bound_text("Rule G, three roundings per term: " + sum(norm_rows(x)), call.math);
    // h = dy gamma; T: of the two sums over a row, a = sum h and b = sum h xhat.
    const std::string means = "(T_a + |xhat| T_b + 4 u (|a| + |xhat b|)) / " + std::to_string(x[-1]);
    const std::string dx = "rstd (3 u |h| + " + means + ") + 2 u |dx|";
    return bound_text(dx + ", h = dy gamma, a = sum h, b = sum h xhat, T = " + sum(x[-1]), call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Judged> judged) const override {
    if (output == 0) {
      evaluate_rows(operands, wanted, judged);
    } else {
      evaluate_columns(operands, output == 1, wanted, judged);
    }
  }

 private:
  // dx = rstd (h - sum(h) / n - xhat sum(h xhat) / n), h = dy gamma; mean and rstd are taken as they were saved.
  static void evaluate_rows(const Operands& operands, std::span<const std::int64_t> wanted, std::span<Judged> judged) {
    const double u = accumulator_roundoff(operands.call.math);
    const std::int64_t n = operands.inputs[1].shape()[-1];
    const auto size = static_cast<std::size_t>(n);
    std::vector<double> gamma(size), h(size), xhat(size);
    operands.inputs[2].read(0, gamma);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.inputs[0].read(wanted[i] * n, h);
      operands.inputs[1].read(wanted[i] * n, xhat);
      const double mean = operands.inputs[3][wanted[i]];
      const double rstd = operands.inputs[4][wanted[i]];
      ProductSum sum, weighted;
      for (std::size_t j = 0; j < size; ++j) {
        h[j] *= gamma[j];
        xhat[j] = (xhat[j] - mean) * rstd;
        sum.add(h[j]);
        weighted.add(h[j] * xhat[j]);
      }
      judge_row({h, xhat, rstd, sum, weighted, u}, judged.subspan(i * size, size));
    }
  }

  struct Row {
    std::span<const double> h, xhat;
    double rstd;
    ProductSum sum, weighted;  // of h, of h xhat
    double u;
  };

  static void judge_row(const Row& row, std::span<Judged> judged) {
    const double n = static_cast<double>(row.h.size());
    const double sum_error = sum_bound(row.sum, row.u);
    const double weighted_error = sum_bound(row.weighted, row.u);
    for (std::size_t j = 0; j < row.h.size(); ++j) {
      const double dx = row.rstd * (row.h[j] - (row.sum.value + row.xhat[j] * row.weighted.value) / n);
      const double means = sum_error + std::fabs(row.xhat[j]) * weighted_error +
                           4.0 * row.u * (std::fabs(row.sum.value) + std::fabs(row.xhat[j] * row.weighted.value));
      judged[j] = {dx, row.rstd * (3.0 * row.u * std::fabs(row.h[j]) + means / n) + 2.0 * row.u * std::fabs(dx)};
    }
  }

  // dgamma = column sums of dy xhat, dbeta of dy.
  static void evaluate_columns(const Operands& operands, bool weighted, std::span<const std::int64_t> wanted,
                               std::span<Judged> judged) {
    const double u = accumulator_roundoff(operands.call.math);
    const std::int64_t n = operands.inputs[1].shape()[-1];
    std::vector<ProductSum> sums(wanted.size());
    std::vector<double> dy(wanted.size()), x(wanted.size(), 1.0);
    for (std::int64_t row = 0; row < norm_rows(operands.inputs[1].shape()); ++row) {
      gather(operands.inputs[0], wanted, row * n, dy);
      if (weighted) {
        gather(operands.inputs[1], wanted, row * n, x);
        const double mean = operands.inputs[3][row];
        const double rstd = operands.inputs[4][row];
        for (double& value : x) value = (value - mean) * rstd;
      }
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j].add(dy[j] * x[j]);
    }
    for (std::size_t j = 0; j < sums.size(); ++j) {
      judged[j] = {sums[j].value, weighted ? sum_bound(sums[j], u) : sum_error_bound(sums[j], u)};
    }
  }
};

}  // namespace

const OpDefinition& layer_norm_backward_definition() {
  static const LayerNormBackwardDefinition definition;
  return definition;
}

const OpDefinition& layer_norm_forward_definition() {
  static const LayerNormForwardDefinition definition;
  return definition;
}

}  // namespace gpubench
