// Statistics of samples: medians, spread, intervals, and the summary of a case's rounds. Pure functions, so that
// readers of a report can recompute them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/record.h"

namespace gpubench {

/// Middle value; mean of the two middle ones. Throws std::invalid_argument for no values.
[[nodiscard]] double median(std::span<const double> values);
/// Median of |x - median|, unscaled.
[[nodiscard]] double median_absolute_deviation(std::span<const double> values);
/// Linear interpolation between order statistics (Hyndman and Fan 1996, type 7); 0 <= p <= 1.
[[nodiscard]] double quantile(std::span<const double> values, double p);
[[nodiscard]] double mean(std::span<const double> values);
/// Of the sample (n - 1); 0 for fewer than two values.
[[nodiscard]] double standard_deviation(std::span<const double> values);
/// P(T <= t) of Student's t with `degrees` degrees of freedom. This and the next two use Boost.Math.
[[nodiscard]] double student_t_cdf(double t, double degrees);
/// P(T > t), to full relative precision for any size.
[[nodiscard]] double student_t_tail(double t, double degrees);
/// The inverse of student_t_cdf(), 0 < p < 1.
[[nodiscard]] double student_t_quantile(double p, double degrees);

/// Median, interval, spread, drift and flags of the valid rounds, without dropping any; values are per run of the
/// program. Samples of valid rounds must be finite and above 0; batch is at least 1.
[[nodiscard]] Summary summarize(std::span<const RoundRecord> rounds, std::int64_t batch);

/// log of the median time of a run (ns) for each valid round.
[[nodiscard]] std::vector<double> log_round_medians(std::span<const RoundRecord> rounds, std::int64_t batch);

/// The 95% half-width of the mean log median, by Student's t; infinite for one round.
[[nodiscard]] double mean_half_width(std::span<const double> log_medians);

}  // namespace gpubench
