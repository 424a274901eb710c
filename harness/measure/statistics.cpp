#include "harness/measure/statistics.h"

#include <boost/math/distributions/students_t.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "harness/core/record.h"

namespace gpubench {
namespace {

std::vector<double> sorted(std::span<const double> values, const char* what) {
  if (values.empty()) throw std::invalid_argument(std::string(what) + " of no values");
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

// Invalid arguments give NaN; long double would gain no digit.
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

namespace {

constexpr double severe_deviations = 10.0 * 1.4826;  // 1.4826 MAD is one standard deviation of normal data
constexpr double min_severe = 0.05;                  // if most samples show the same clock tick, MAD is 0
constexpr double severe_share = 0.05;
constexpr double drift_size = 0.01;
constexpr double drift_t = 3.36;  // t(0.995, 8): two halves of five rounds

struct Pooled {
  std::vector<double> samples;
  std::vector<double> log_medians;
};

Pooled pool(std::span<const RoundRecord> rounds, std::int64_t batch) {
  Pooled pooled;
  for (const RoundRecord& round : rounds) {
    if (!round.valid || round.times.device_ns.empty()) continue;
    const std::size_t first = pooled.samples.size();
    for (const double interval : round.times.device_ns) pooled.samples.push_back(interval / static_cast<double>(batch));
    pooled.log_medians.push_back(std::log(median(std::span(pooled.samples).subspan(first))));
  }
  return pooled;
}

struct Drift {
  double size = 0.0;  // of the log medians, second half minus first
  bool significant = false;
};

// Two samples with pooled variance. A middle round belongs to neither half.
Drift drift_of(std::span<const double> log_medians) {
  const std::size_t half = log_medians.size() / 2;
  if (half < 2) return {};  // no spread within a half to compare the difference with
  const std::span<const double> first = log_medians.first(half);
  const std::span<const double> second = log_medians.last(half);
  const double variance = 0.5 * (std::pow(standard_deviation(first), 2) + std::pow(standard_deviation(second), 2));
  const double difference = std::fabs(mean(second) - mean(first));
  const double needed = std::max(drift_t, student_t_quantile(0.995, 2.0 * static_cast<double>(half) - 2.0));
  return {median(second) - median(first), difference > needed * std::sqrt(2.0 * variance / static_cast<double>(half))};
}

std::int64_t count_severe(std::span<const double> samples) {
  std::vector<double> logs(samples.begin(), samples.end());
  for (double& value : logs) value = std::log(value);
  const double centre = median(logs);
  const double limit = std::max(severe_deviations * median_absolute_deviation(logs), min_severe);
  return std::count_if(logs.begin(), logs.end(), [&](double x) { return std::fabs(x - centre) > limit; });
}

}  // namespace

std::vector<double> log_round_medians(std::span<const RoundRecord> rounds, std::int64_t batch) {
  return pool(rounds, batch).log_medians;
}

double mean_half_width(std::span<const double> log_medians) {
  if (log_medians.size() < 2) return std::numeric_limits<double>::infinity();
  const auto rounds = static_cast<double>(log_medians.size());
  return student_t_quantile(0.975, rounds - 1.0) * standard_deviation(log_medians) / std::sqrt(rounds);
}

Summary summarize(std::span<const RoundRecord> rounds, std::int64_t batch) {
  const auto [samples, log_medians] = pool(rounds, batch);
  Summary s;
  if (samples.empty()) return s;
  s.rounds = static_cast<int>(log_medians.size());
  s.samples = static_cast<std::int64_t>(samples.size());
  s.median_ns = median(samples);
  s.mad_ns = median_absolute_deviation(samples);
  s.min_ns = *std::min_element(samples.begin(), samples.end());
  s.p10_ns = quantile(samples, 0.10);
  s.p90_ns = quantile(samples, 0.90);
  s.mean_ns = mean(samples);
  s.round_sd = standard_deviation(log_medians);
  s.severe = count_severe(samples);
  const double h = mean_half_width(log_medians);
  s.ci95_low_ns = std::isfinite(h) ? std::exp(mean(log_medians) - h) : s.median_ns;
  s.ci95_high_ns = std::isfinite(h) ? std::exp(mean(log_medians) + h) : s.median_ns;
  const Drift drift = drift_of(log_medians);
  s.drift = drift.size;
  if (timing_unreliable(s)) s.flags.emplace_back(std::isfinite(h) ? "noisy" : "no interval");
  if (std::fabs(drift.size) > drift_size && drift.significant) s.flags.emplace_back("drift");
  if (static_cast<double>(s.severe) > severe_share * static_cast<double>(s.samples)) s.flags.emplace_back("severe");
  return s;
}

}  // namespace gpubench
