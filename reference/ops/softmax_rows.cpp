// Bounds: positive terms, so relative errors do not grow; exp within three ulps (OpenCL's table); the exponent x - m is
// rounded relative to |x - m|. A label outside the classes has no right answer: its loss is NaN, which nothing passes.
#include "reference/ops/softmax_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "reference/ops/bound_text.h"
#include "reference/ops/sum_error_bound.h"
#include "reference/ops/wanted_elements.h"

namespace gpubench {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

std::int64_t label_of(const Operands& operands, std::int64_t row) {
  return static_cast<std::int64_t>(operands.inputs[1][row]);
}

// m: the largest logit of the row; p: its probabilities.
std::string log_sum_exp_rule(std::int64_t classes) {
  return "u (2 sum p (m - x) + 2 sqrt(" + std::to_string(classes) + ") + 6 + 2|lse - m| + 2|lse|)";
}

}  // namespace

// Per row T(lse) + 2u|x_target|; their mean, and Rule G for the sum over rows.
Expected judge_mean_loss(const Operands& operands) {
  const double u = accumulator_roundoff(operands.call.math);
  const std::int64_t rows = operands.inputs[0].shape()[0];
  std::vector<double> x(static_cast<std::size_t>(operands.inputs[0].shape()[1]));
  ProductSum losses;
  double bounds = 0.0;
  for (std::int64_t row = 0; row < rows; ++row) {
    operands.inputs[0].read(row * static_cast<std::int64_t>(x.size()), x);
    const Expected lse = judge_log_sum_exp(x, u);
    const std::int64_t label = label_of(operands, row);
    const bool valid = label >= 0 && label < static_cast<std::int64_t>(x.size());
    const double target = valid ? x[static_cast<std::size_t>(label)] : nan;
    losses.add(lse.value - target);
    bounds += lse.bound + 2.0 * u * std::fabs(target);
  }
  const double count = static_cast<double>(rows);
  const double mean = losses.value / count;
  return {mean, (bounds + sum_error_bound(losses, u)) / count + u * std::fabs(mean)};
}

std::string mean_loss_bound(const Shape& logits, const Math& math) {
  const std::string mean = "(sum T + " + sum_error_text(logits[0]) + ") / " + std::to_string(logits[0]) + " + u |loss|";
  return bound_text(mean + ", T = 2 u |x_label| + " + log_sum_exp_rule(logits[1]), math);
}

// With D = m - x >= 0 and w = sum p 2uD, T = w + u (2 sqrt(N) + 6 + 2|ln sum| + 2|lse|).
Expected judge_log_sum_exp(std::span<const double> x, double u) {
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

std::string log_sum_exp_bound(const Shape& logits, const Math& math) {
  return bound_text(log_sum_exp_rule(logits[1]), math);
}

CheckUnits loss_units(const Shape& logits, const Shape& output, int index) {
  const double row = 20.0 * static_cast<double>(logits[1]);  // an exp counts for sixteen
  return element_units(output, index == 0 ? row * static_cast<double>(logits[0]) : row);
}

SoftmaxRow softmax_row(const Operands& operands, std::int64_t row) {
  return {.label = label_of(operands, row),
          .rows = static_cast<double>(operands.inputs[0].shape()[0]),
          .u = accumulator_roundoff(operands.call.math),
          .tiny = smallest_normal(operands.call.math.accumulate)};
}

// p carries the errors of one difference and one exp, 2|x - lse| + 6 ulps, and the factor that an error of the lse is;
// then come the difference with the label and the product with 1 / rows.
Expected judge_gradient(const SoftmaxRow& row, double x, std::int64_t column) {
  const double exponent = x - row.lse;
  const double p = std::exp(exponent);
  const double one = column == row.label ? 1.0 : 0.0;
  const double value = (p - one) / row.rows;
  const double relative =
      std::expm1(row.lse_error) + std::exp(row.lse_error) * row.u * (2.0 * std::fabs(exponent) + 6.0);
  const double p_bound = p > 0.0 ? p * relative : 0.0;
  const double bound = (p_bound + 2.0 * row.u * std::max(p, one)) / row.rows + row.u * std::fabs(value);
  return {value, bound + row.tiny};
}

}  // namespace gpubench
