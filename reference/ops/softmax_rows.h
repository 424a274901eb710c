// What a row of logits should come to and how far off it may come out: shared by cross_entropy_forward, its backward,
// and the op that is both. Inputs are logits [rows, classes] and labels [rows], in this order.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reference/ops/definition.h"

namespace gpubench {

/// Output 0 of cross_entropy_forward: the mean loss. A label outside the classes makes it NaN.
[[nodiscard]] Expected judge_mean_loss(const Operands& operands);
[[nodiscard]] std::string mean_loss_bound(const Shape& logits, const Math& math);

/// Output 1: log sum exp of one row, in fp64; u is the unit roundoff of the arithmetic.
[[nodiscard]] Expected judge_log_sum_exp(std::span<const double> x, double u);
[[nodiscard]] std::string log_sum_exp_bound(const Shape& logits, const Math& math);

/// Those two outputs, one element a unit.
[[nodiscard]] CheckUnits loss_units(const Shape& logits, const Shape& output, int index);

/// What the gradients of a row are judged with.
struct SoftmaxRow {
  double lse = 0.0;        ///< NaN where the label is outside the classes
  double lse_error = 0.0;  ///< how far from it the lse that was used may lie; 0 where it was given
  std::int64_t label = -1;
  double rows = 1.0;
  double u = 0.0;
  double tiny = 0.0;  ///< smallest normal number of the arithmetic: an exp may flush what is below
};
/// The row of the call's logits and labels, its lse still to be set.
[[nodiscard]] SoftmaxRow softmax_row(const Operands& operands, std::int64_t row);

/// (exp(x - lse) - 1[label]) / rows for the logit x of one class.
[[nodiscard]] Expected judge_gradient(const SoftmaxRow& row, double x, std::int64_t column);

}  // namespace gpubench
