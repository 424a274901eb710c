// Statistics of samples: medians, spread, intervals. Pure functions; the report and the comparison use them too.
#pragma once

#include <span>
#include <vector>

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
/// P(T <= t) of Student's t with `degrees` degrees of freedom. This and the next two by Boost.Math.
[[nodiscard]] double student_t_cdf(double t, double degrees);
/// P(T > t), to full relative precision however small it is.
[[nodiscard]] double student_t_tail(double t, double degrees);
/// The inverse of student_t_cdf(), 0 < p < 1.
[[nodiscard]] double student_t_quantile(double p, double degrees);

}  // namespace gpubench
