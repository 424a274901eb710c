#include "harness/measure/statistics.h"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <stdexcept>
#include <string>

namespace gpubench {
namespace {

std::vector<double> sorted(std::span<const double> values, const char* what) {
  if (values.empty()) throw std::invalid_argument(std::string(what) + " of no values");
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

// What makes no sense is NaN, and no digit is gained by going through long double.
using StudentT = boost::math::students_t_distribution<
    double, boost::math::policies::policy<boost::math::policies::promote_double<false>,
                                          boost::math::policies::domain_error<boost::math::policies::ignore_error>,
                                          boost::math::policies::overflow_error<boost::math::policies::ignore_error>>>;

}  // namespace

double median(std::span<const double> values) {
  const std::vector<double> order = sorted(values, "median");
  const std::size_t middle = order.size() / 2;
  return order.size() % 2 == 1 ? order[middle] : 0.5 * (order[middle - 1] + order[middle]);
}

double median_absolute_deviation(std::span<const double> values) {
  const double centre = median(values);
  std::vector<double> deviations(values.begin(), values.end());
  for (double& value : deviations) value = std::fabs(value - centre);
  return median(deviations);
}

double quantile(std::span<const double> values, double p) {
  if (!(p >= 0.0 && p <= 1.0)) throw std::invalid_argument("quantile outside [0, 1]");
  const std::vector<double> order = sorted(values, "quantile");
  const double position = p * static_cast<double>(order.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, order.size() - 1);
  return order[below] + (position - static_cast<double>(below)) * (order[above] - order[below]);
}

double mean(std::span<const double> values) {
  if (values.empty()) throw std::invalid_argument("mean of no values");
  double sum = 0.0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

double standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return 0.0;
  const double centre = mean(values);
  double squares = 0.0;
  for (const double value : values) squares += (value - centre) * (value - centre);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

double student_t_cdf(double t, double degrees) { return cdf(StudentT(degrees), t); }

double student_t_tail(double t, double degrees) { return cdf(complement(StudentT(degrees), t)); }

double student_t_quantile(double p, double degrees) {
  if (!(p > 0.0 && p < 1.0)) throw std::invalid_argument("a quantile of Student's t needs 0 < p < 1");
  return quantile(StudentT(degrees), p);
}

}  // namespace gpubench
