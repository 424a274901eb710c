// Inputs of OpDefinition::revealing_data on which a formula that is right on paper cancels, overflows or saturates:
// means far above the deviation, rows far from 0, numbers up to the ends of a type.
#pragma once

#include <cstddef>
#include <cstdint>

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
/// The same for lines whose sums have this many terms: at most 65,536, since in longer ones roundings of the few
/// numbers of a 16-bit type add up.
[[nodiscard]] bool has_line_ranges(DType type, std::int64_t terms);
/// Whether these show a variance as E[x^2] - E[x]^2: not below 32 terms, nor in bf16 beyond 1024, where its sums may be
/// exact.
[[nodiscard]] bool show_cancellation(DType type, std::int64_t terms);

/// Rows, or channels (last axis), for statistics. In turn: two with large means (where `centered`), squares below any
/// epsilon, squares above the range of f16.
[[nodiscard]] RevealingData::Input rows_to_normalize(std::size_t index, const TensorSpec& x, bool centered);
[[nodiscard]] RevealingData::Input channels_to_normalize(std::size_t index, const TensorSpec& x);

/// Elements around a large mean, by row or by channel.
[[nodiscard]] RevealingData::Input rows_with_large_means(std::size_t index, const TensorSpec& x);
[[nodiscard]] RevealingData::Input channels_with_large_means(std::size_t index, const TensorSpec& x);
/// The means of these, as a statistic per row or per channel, and the same reciprocal deviation of all.
[[nodiscard]] RevealingData::Input large_means(std::size_t index, DType of);
[[nodiscard]] RevealingData::Input rstd_of_large_means(std::size_t index, DType of);

/// How far the rows of rows_far_from_zero() are from 0: 200, -200, 49152, -49152, by row. In f32 exp overflows from 89
/// on, and is 0 from -104 on.
[[nodiscard]] double far_from_zero(std::int64_t row);
/// Rows (last axis) far from 0, in which at most 512 numbers are near the largest: an exponential needs that.
[[nodiscard]] RevealingData::Input rows_far_from_zero(std::size_t index, const TensorSpec& x);

/// Numbers from -100 to 100.
[[nodiscard]] RevealingData::Input up_to_100(std::size_t index);
/// These, and powers of two up to the largest of the type, at most 2^127, from the smallest whose products with numbers
/// near 1 are normal. `factors`: by how much results may be larger, in powers of two, without overflow.
[[nodiscard]] RevealingData::Input wide_range(std::size_t index, const TensorSpec& x, int factors = 0);

}  // namespace gpubench
