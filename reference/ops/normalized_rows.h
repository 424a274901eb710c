// What a normalized row should be and how far off it may come out: shared by layer_norm_forward and the ops that
// normalize what they first computed themselves.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reference/ops/definition.h"

namespace gpubench {

enum class NormalizedOutput { y, mean, rstd };

/// One row x, in fp64, and what it is normalized with; u is the unit roundoff of the arithmetic.
struct NormalizedRow {
  std::span<const double> x, gamma, beta;
  double epsilon = 0.0;
  double u = 0.0;
};

/// Rows of x as units of `elements` elements each: one of each kind that the norm fills give, and the last, are always
/// judged.
[[nodiscard]] Units norm_row_units(const Shape& x, std::int64_t elements, double flop_per_element);

/// Judges an output of a row: as many elements as x has for y, one for a statistic.
void judge_normalized(NormalizedOutput output, const NormalizedRow& row, std::span<Judged> judged);

/// The rule that judge_normalized() computes, for rows of n elements.
[[nodiscard]] std::string normalized_bound(NormalizedOutput output, std::int64_t n, const Math& math);

/// Throws ProgramError where a gradient flows into the mean or rstd of a norm: only its backward may read them.
void refuse_gradient_of_statistics(const OpCall& call, const GradientTape& tape, ValueId mean, ValueId rstd);

}  // namespace gpubench
