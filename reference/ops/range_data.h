// Revealing data (OpDefinition::revealing_data) on which formulas correct on paper cancel, overflow or saturate: means
// far above the deviation, rows far from 0, numbers up to a type's limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "reference/ops/definition.h"

namespace gpubench {

/// Lines (rows or channels) whose mean is 113 (bf16), 142 (f16) or 880 (else) standard deviations from 0, of either
/// sign: E[x^2] - E[x]^2 keeps few bits of the variance or none. In lines of more than 1024, neighbours deviate by
/// opposite amounts, so that the mean is exact.
struct LargeMeans {
  DType type;
  [[nodiscard]] double mean(std::int64_t line) const;
  [[nodiscard]] double element(std::int64_t line, std::int64_t at, std::int64_t terms) const;
  [[nodiscard]] double rstd() const;
};

[[nodiscard]] bool has_ranges(DType type);

/// Axes of the statistics: the last (rows), or all others (channels).
enum class StatisticsOf { rows, channels };

/// Data for input 0 of a normalizing op. Lines take turns: two with large means (if `centered`), squares below any
/// epsilon, squares above f16's range. Empty for lines of more than 65,536, where roundings of the few numbers of a
/// 16-bit type add up.
[[nodiscard]] std::vector<RevealingData> lines_to_normalize(const TensorSpec& x, StatisticsOf lines,
                                                            bool centered = true);
/// Whether the data reveal a variance computed as E[x^2] - E[x]^2: from 32 terms; in bf16 up to 1024, above which its
/// sums may be exact.
[[nodiscard]] bool show_cancellation(DType type, std::int64_t terms);
/// Data for a norm's backward: lines of large means with their saved mean and rstd, on which dgamma as
/// sum(dy x) - mean sum(dy) cancels.
[[nodiscard]] std::vector<RevealingData> normalized_lines(const CallSpecs& op, StatisticsOf lines);

/// By row: 200, -200, 49152, -49152. In f32, exp overflows from 89 and is 0 below -104.
[[nodiscard]] double far_from_zero(std::int64_t row);
/// Data for input 0: rows (last axis) around far_from_zero(), with at most 512 numbers near the row's largest.
[[nodiscard]] std::vector<RevealingData> rows_far_from_zero(const TensorSpec& x);

[[nodiscard]] RevealingData::Input up_to_100(std::size_t index);
/// up_to_100(), mixed with powers of two up to the type's largest, at most 2^127, from the smallest whose products with
/// numbers near 1 are normal. `factors`: how many powers of two results may grow without overflow.
[[nodiscard]] RevealingData::Input wide_range(std::size_t index, const TensorSpec& x, int factors = 0);

}  // namespace gpubench
