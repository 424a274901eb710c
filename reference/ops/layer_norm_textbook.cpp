// Rows are judged whole, column sums element by element. The bounds stay finite and honest for rows without variance,
// where an epsilon at the wrong place shows.
#include "reference/ops/layer_norm_textbook.h"

#include <cmath>
#include <set>

#include "reference/ops/bound_text.h"
#include "reference/ops/bytes_moved.h"
#include "reference/ops/dot.h"
#include "reference/ops/incoming_gradient.h"
#include "reference/ops/layer_norm.h"
#include "reference/ops/wanted_elements.h"

namespace gpubench {
namespace {

std::int64_t rows_of(const Shape& x) { return x.elements() / x[-1]; }

// Norm fills give rows of eight kinds in turn (norm_rows): one of each is always judged, and the last row.
std::vector<std::int64_t> row_landmarks(std::int64_t rows) {
  std::set<std::int64_t> units;
  for (std::int64_t row = 0; row < std::min<std::int64_t>(rows, 8); ++row) units.insert(row);
  if (rows > 0) units.insert(rows - 1);
  return {units.begin(), units.end()};
}

Units row_units(const Shape& x, std::int64_t elements, double flop_per_element) {
  const std::int64_t rows = rows_of(x);
  return {rows, elements, flop_per_element * static_cast<double>(x[-1]), row_landmarks(rows)};
}

// Exact statistics of one row, and how far arithmetic of unit roundoff u may be off: the mean by its sum of n terms,
// rstd by the relative error theta of a two-pass variance (squared deviations, and the mean's error squared).
struct RowStatistics {
  double mean = 0.0, mean_bound = 0.0;
  double rstd = 0.0, theta = 0.0;

  RowStatistics(std::span<const double> x, double epsilon, double u) {
    const double n = static_cast<double>(x.size());
    double size = 0.0;
    for (const double value : x) {
      mean += value;
      size += std::fabs(value);
    }
    mean /= n;
    double variance = 0.0;
    for (const double value : x) variance += (value - mean) * (value - mean);
    variance /= n;
    const double summing = 2.0 * std::sqrt(n) * u;
    mean_bound = summing * size / n + 2.0 * u * std::fabs(mean);
    rstd = 1.0 / std::sqrt(variance + epsilon);
    const double variance_bound = summing * variance + mean_bound * mean_bound;
    theta = 0.5 * variance_bound * rstd * rstd + 3.0 * u;
  }
};

class LayerNormForwardDefinition : public OpDefinition {
 public:
  OpKind kind() const override { return layer_norm_forward_kind; }

  Cost cost(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec> outputs) const override {
    return {8.0 * static_cast<double>(inputs[0].shape.elements()), bytes_moved(inputs) + bytes_moved(outputs)};
  }

  Units units(const OpCall&, std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
              int output) const override {
    return output == 0 ? row_units(inputs[0].shape, inputs[0].shape[-1], 20.0) : row_units(inputs[0].shape, 1, 6.0);
  }

  std::string bound(const OpCall& call, std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                    int output) const override {
    const std::string n = std::to_string(inputs[0].shape[-1]);
    const std::string mean = "2 u sqrt(" + n + ") mean|x| + 2 u |mean|";
    if (output == 1) return bound_text(mean, call.math);
    const std::string theta = ", r = 3 u + (2 u sqrt(" + n + ") var + T^2) rstd^2 / 2, T = " + mean;
    if (output == 2) return bound_text("rstd (r + u)" + theta, call.math);
    const std::string y = "|gamma| rstd (T + |x - mean| (r + 4 u)) + 2 u (|y| + |beta|)";
    return bound_text(y + theta, call.math);
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
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.inputs[0].read(wanted[i] * n, x);
      const RowStatistics row(x, epsilon, u);
      if (output == 1) {
        judged[i] = {row.mean, row.mean_bound};
      } else if (output == 2) {
        judged[i] = {row.rstd, row.rstd * (row.theta + u)};
      } else {
        judge_row(row, u, x, gamma, beta, judged.subspan(i * x.size(), x.size()));
      }
    }
  }

  void derivative(Program& program, const OpCall& call, GradientTape& tape) const override;

 private:
  static void judge_row(const RowStatistics& row, double u, std::span<const double> x, std::span<const double> gamma,
                        std::span<const double> beta, std::span<Judged> judged) {
    for (std::size_t j = 0; j < x.size(); ++j) {
      const double deviation = x[j] - row.mean;
      const double y = gamma[j] * deviation * row.rstd + beta[j];
      const double normalized = row.rstd * (row.mean_bound + std::fabs(deviation) * (row.theta + 4.0 * u));
      judged[j] = {y, std::fabs(gamma[j]) * normalized + 2.0 * u * (std::fabs(y) + std::fabs(beta[j]))};
    }
  }
};

void LayerNormForwardDefinition::derivative(Program& program, const OpCall& call, GradientTape& tape) const {
  for (const ValueId statistic : {call.outputs[1], call.outputs[2]}) {
    if (tape.of(statistic) || tape.is_loss(statistic)) {
      throw ProgramError("layer_norm_forward: a gradient flows into a statistic of op '" + call.label +
                         "'; expected mean and rstd to be read by its backward only");
    }
  }
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
  return u * (2.0 * std::sqrt(sum.terms) + 3.0) * (std::fabs(sum.value) + std::sqrt(sum.squares));
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
    if (output == 0) return row_units(x, x[-1], 30.0);
    return element_units(outputs[static_cast<std::size_t>(output)].shape, 8.0 * static_cast<double>(rows_of(x)));
  }

  std::string bound(const OpCall& call, std::span<const TensorSpec> inputs, std::span<const TensorSpec>,
                    int output) const override {
    const Shape& x = inputs[1].shape;
    if (output == 2) return rule_g_bound(rows_of(x), call.math);
    const auto sum = [](std::int64_t terms) { return "u (2 sqrt(" + std::to_string(terms) + ") + 3) (|C| + Q)"; };
    if (output == 1) return bound_text("Rule G, three roundings per term: " + sum(rows_of(x)), call.math);
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
    for (std::int64_t row = 0; row < rows_of(operands.inputs[1].shape()); ++row) {
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
      judged[j] = {sums[j].value, weighted ? sum_bound(sums[j], u) : rule_g(sums[j], u)};
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
