#include "harness/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
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

// The continued fraction of the incomplete beta function, by the modified Lentz method.
// Abramowitz and Stegun 26.5.8; Numerical Recipes (2007), 6.4.
double beta_fraction(double a, double b, double x) {
  constexpr double tiny = 1e-300;
  constexpr int most_terms = 10000;  // sqrt(max(a, b)) terms are enough; this only ends a NaN
  const auto away_from_zero = [](double v) { return std::fabs(v) < tiny ? tiny : v; };
  double c = 1.0;
  double d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
  double fraction = d;
  for (int m = 1; m <= most_terms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m));
    d = 1.0 / away_from_zero(1.0 + even * d);
    c = away_from_zero(1.0 + even / c);
    fraction *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0));
    d = 1.0 / away_from_zero(1.0 + odd * d);
    c = away_from_zero(1.0 + odd / c);
    fraction *= d * c;
    if (std::fabs(d * c - 1.0) <= std::numeric_limits<double>::epsilon()) break;
  }
  return fraction;
}

// I_x(a, b) with its complement y = 1 - x given apart, so that neither loses digits near an end.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0.0) return 0.0;
  if (y <= 0.0) return 1.0;
  const double front =
      std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y));
  // The fraction converges fast on this side of the mean only.
  if (x < (a + 1.0) / (a + b + 2.0)) return front * beta_fraction(a, b, x) / a;
  return 1.0 - front * beta_fraction(b, a, y) / b;
}

// P(T > t) for t >= 0.
double upper_tail(double t, double degrees) {
  const double square = t * t;
  return 0.5 * incomplete_beta(0.5 * degrees, 0.5, degrees / (degrees + square), square / (degrees + square));
}

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

double student_t_cdf(double t, double degrees) {
  const double tail = upper_tail(std::fabs(t), degrees);
  return t > 0.0 ? 1.0 - tail : tail;
}

double student_t_tail(double t, double degrees) {
  const double tail = upper_tail(std::fabs(t), degrees);
  return t < 0.0 ? 1.0 - tail : tail;
}

double student_t_quantile(double p, double degrees) {
  if (!(p > 0.0 && p < 1.0)) throw std::invalid_argument("a quantile of Student's t needs 0 < p < 1");
  if (p == 0.5) return 0.0;
  const double tail = std::min(p, 1.0 - p);
  double low = 0.0;
  double high = 1.0;
  while (upper_tail(high, degrees) > tail) {
    low = high;
    high *= 2.0;
  }
  // The tail falls monotonically; halve the bracket until no double lies inside.
  for (double middle = 0.5 * (low + high); middle > low && middle < high; middle = 0.5 * (low + high)) {
    (upper_tail(middle, degrees) > tail ? low : high) = middle;
  }
  const double t = 0.5 * (low + high);
  return p > 0.5 ? t : -t;
}

}  // namespace gpubench
