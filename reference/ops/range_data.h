// Inputs of OpDefinition::revealing_data on which a formula that is right on paper cancels, overflows or saturates:
// means far above the deviation, rows far from 0, numbers up to the ends of a type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/ops/definition.h"

namespace gpubench {

/// Lines (rows or channels) whose mean is 113 (bf16), 142 (f16) or 880 times their standard deviation, of either sign:
/// E[x^2] - E[x]^2 keeps few bits of their variance, or none. In lines of more than 1024 neighbours deviate by the same
/// amount with opposite signs, so that their mean is exact.
struct LargeMeans {
  DType type;
  [[nodiscard]] double mean(std::int64_t line) const;
  /// Element `at` of a line of `terms`.
  [[nodiscard]] double element(std::int64_t line, std::int64_t at, std::int64_t terms) const;
  [[nodiscard]] double rstd() const;  ///< one over their standard deviation
};

/// Whether range data can be made of a type: of 16 bits or more.
[[nodiscard]] bool has_ranges(DType type);

/// What statistics are taken of: rows (last axis) or channels (the other axes).
enum class StatisticsOf { rows, channels };

/// Data for input 0 of an op that takes statistics of it. Lines take turns: two with large means (where `centered`),
/// squares below any epsilon, squares above the range of f16. None for lines of more than 65,536, since roundings of
/// the few numbers of a 16-bit type add up there.
[[nodiscard]] std::vector<RevealingData> lines_to_normalize(const TensorSpec& x, StatisticsOf lines,
                                                            bool centered = true);
/// Whether these show a variance as E[x^2] - E[x]^2: not below 32 terms, nor in bf16 beyond 1024, where its sums may be
/// exact.
[[nodiscard]] bool show_cancellation(DType type, std::int64_t terms);
/// Data for the backward of such an op: lines of large means, with the mean and rstd that the forward saved. dgamma as
/// sum(dy x) - mean sum(dy) cancels there.
[[nodiscard]] std::vector<RevealingData> normalized_lines(const CallSpecs& op, StatisticsOf lines);

/// How far the rows of rows_far_from_zero() are from 0: 200, -200, 49152, -49152, by row. In f32 exp overflows from 89
/// on, and is 0 from -104 on.
[[nodiscard]] double far_from_zero(std::int64_t row);
/// Data for input 0: rows (last axis) far from 0, in which at most 512 numbers are near the largest, which an
/// exponential needs.
[[nodiscard]] std::vector<RevealingData> rows_far_from_zero(const TensorSpec& x);

/// Numbers from -100 to 100.
[[nodiscard]] RevealingData::Input up_to_100(std::size_t index);
/// These, and powers of two up to the largest of the type, at most 2^127, from the smallest whose products with numbers
/// near 1 are normal. `factors`: by how much results may be larger, in powers of two, without overflow.
[[nodiscard]] RevealingData::Input wide_range(std::size_t index, const TensorSpec& x, int factors = 0);

}  // namespace gpubench
