// Rows of dx are judged whole, column sums element by element.
#include <cmath>
#include <vector>

#include "reference/ops/definition.h"
#include "reference/ops/norm.h"
#include "reference/ops/range_data.h"
#include "reference/ops/sum_error_bound.h"

namespace gpubench {
namespace {

std::int64_t norm_rows(const Shape& x) { return x.elements() / x[-1]; }

// T of a sum whose terms are products of a few rounded factors: Rule G, and three roundings per term.
double sum_bound(const ProductSum& sum, double u) {
  return u * (2.0 * std::sqrt(sum.terms) + 3.0) * partial_sum_size(sum);
}

template <const OpKind& norm_kind>
class NormBackwardDefinition : public DefinitionOf<norm_kind> {
 public:
  Cost cost(const CallSpecs& op) const override {
    return {(centered ? residual ? 15.0 : 14.0 : 11.0) * elements_of(op.inputs[0]), op.bytes()};
  }

  CheckUnits units(const CallSpecs& op, int output) const override {
    const Shape& x = op.inputs[1].shape;
    if (output == 0) return norm_row_units(x, x[-1], 30.0);
    return element_units(op.output(output).shape, 8.0 * static_cast<double>(norm_rows(x)));
  }

  std::string bound(const CallSpecs& op, int output) const override {
    const Shape& x = op.inputs[1].shape;
    if (output == 2) return sum_error_bound_text(norm_rows(x), op.call.math);
    const auto sum = [](std::int64_t terms) {
      return "u (2 sqrt(" + std::to_string(terms) + ") + 3) " + std::string(partial_sum_text);
    };
    if (output == 1) return bound_text("Rule G, three roundings per term: " + sum(norm_rows(x)), op.call.math);
    if (!centered) {
      const std::string mean = "|xhat| (T + 4 u |b|) / " + std::to_string(x[-1]);
      const std::string h = row_norm_of(op.call).rounds_before_gamma ? "round(dy gamma)" : "dy gamma";
      return bound_text("rstd (3 u |h| + " + mean + ") + 2 u |dx|, h = " + h + ", b = sum h xhat, T = " + sum(x[-1]),
                        op.call.math);
    }
    // h = dy gamma; T_a, T_b: bounds of the sums over a row, a = sum h and b = sum h xhat.
    const std::string added = residual ? " + u |dx + dr|" : "";
    const std::string means = "(T_a + |xhat| T_b + 4 u (|a| + |xhat b|)) / " + std::to_string(x[-1]);
    const std::string dx = "rstd (3 u |h| + " + means + ") + 2 u |dx|";
    return bound_text(dx + added + ", h = dy gamma, a = sum h, b = sum h xhat, T = " + sum(x[-1]), op.call.math);
  }

  void evaluate(const Operands& operands, int output, std::span<const std::int64_t> wanted,
                std::span<Expected> judged) const override {
    if (output == 0) {
      evaluate_rows(operands, wanted, judged);
    } else {
      evaluate_columns(operands, output == 1, wanted, judged);
    }
  }

  std::vector<RevealingData> revealing_data(const CallSpecs& op) const override {
    return centered ? normalized_lines(op, StatisticsOf::rows) : std::vector<RevealingData>{};
  }

 private:
  static constexpr bool centered = norm_kind.name != rms_norm_backward_kind.name;
  static constexpr bool residual = norm_kind.name == residual_norm_backward_kind.name;

  // dx = rstd (h - sum(h) / n - xhat sum(h xhat) / n), h = dy gamma, with mean and rstd as saved; without a mean, the
  // first sum is absent. `apart`: error of h, if it is rounded.
  static void evaluate_rows(const Operands& operands, std::span<const std::int64_t> wanted,
                            std::span<Expected> judged) {
    const double u = accumulator_roundoff(operands.call.math);
    const std::int64_t n = operands.inputs[1].shape()[-1];
    const auto size = static_cast<std::size_t>(n);
    std::vector<double> gamma(size), h(size), xhat(size), dr(residual ? size : 0), apart(size);
    operands.input("gamma").read(0, gamma);
    const bool rounds = row_norm_of(operands.call).rounds_before_gamma;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      operands.input("dy").read(wanted[i] * n, h);
      operands.input("x").read(wanted[i] * n, xhat);
      const double mean = mean_of(operands, wanted[i]);
      const double rstd = operands.input("rstd")[wanted[i]];
      ProductSum sum, weighted;
      double of_weighted = 0.0;  // the error of the weighted sum due to h
      for (std::size_t j = 0; j < size; ++j) {
        h[j] *= gamma[j];
        xhat[j] = (xhat[j] - mean) * rstd;
        if (rounds) {
          const Expected rounded = rounded_to(operands.input("x").dtype(), {h[j], u * std::fabs(h[j])});
          h[j] = rounded.value;
          apart[j] = rounded.bound;
          of_weighted += rounded.bound * std::fabs(xhat[j]);
        }
        if (centered) sum.add(h[j]);
        weighted.add(h[j] * xhat[j]);
      }
      const std::span<Expected> of_row = judged.subspan(i * size, size);
      judge_row({h, xhat, rstd, sum, weighted, u}, of_row);
      for (std::size_t j = 0; rounds && j < size; ++j)
        of_row[j].bound += rstd * (apart[j] + std::fabs(xhat[j]) * of_weighted / static_cast<double>(n));
      if (!residual) continue;
      operands.input("dr").read(wanted[i] * n, dr);
      add_residual(dr, u, of_row);
    }
  }

  static void add_residual(std::span<const double> dr, double u, std::span<Expected> judged) {
    for (std::size_t j = 0; j < dr.size(); ++j) {
      judged[j].value += dr[j];
      judged[j].bound += u * std::fabs(judged[j].value);
    }
  }

  static double mean_of(const Operands& operands, std::int64_t row) {
    return centered ? operands.input("mean")[row] : 0.0;
  }

  struct Row {
    std::span<const double> h, xhat;
    double rstd;
    ProductSum sum, weighted;
    double u;
  };

  static void judge_row(const Row& row, std::span<Expected> judged) {
    const double n = static_cast<double>(row.h.size());
    const double sum_error = centered ? sum_bound(row.sum, row.u) : 0.0;
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
                               std::span<Expected> judged) {
    const double u = accumulator_roundoff(operands.call.math);
    const std::int64_t n = operands.inputs[1].shape()[-1];
    std::vector<ProductSum> sums(wanted.size());
    std::vector<double> dy(wanted.size()), x(wanted.size(), 1.0), apart(wanted.size());
    const TensorView& rstds = operands.input("rstd");
    const bool rounds = weighted && row_norm_of(operands.call).rounds_before_gamma;
    for (std::int64_t row = 0; row < norm_rows(operands.inputs[1].shape()); ++row) {
      gather(operands.inputs[0], wanted, row * n, dy);
      if (weighted) {
        gather(operands.inputs[1], wanted, row * n, x);
        const double mean = mean_of(operands, row);
        const double rstd = rstds[row];
        for (double& value : x) value = (value - mean) * rstd;
      }
      for (std::size_t j = 0; rounds && j < sums.size(); ++j) {
        const Expected xhat = rounded_to(operands.inputs[1].dtype(), {x[j], 2.0 * u * std::fabs(x[j])});
        x[j] = xhat.value;
        apart[j] += std::fabs(dy[j]) * xhat.bound;
      }
      for (std::size_t j = 0; j < sums.size(); ++j) sums[j].add(dy[j] * x[j]);
    }
    for (std::size_t j = 0; j < sums.size(); ++j) {
      judged[j] = {sums[j].value, weighted ? apart[j] + sum_bound(sums[j], u) : sum_error_bound(sums[j], u)};
    }
  }
};

}  // namespace

Definitions norm_backward_definitions() {
  return definitions_of<NormBackwardDefinition<layer_norm_backward_kind>,
                        NormBackwardDefinition<residual_norm_backward_kind>,
                        NormBackwardDefinition<rms_norm_backward_kind>>();
}

}  // namespace gpubench
