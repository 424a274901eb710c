#include "harness/measure/protocol.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

constexpr Protocol smoke{"smoke", 3, 3, 3, 0.0, 0.12, 200e-6, 1, 0.002, 1, 0.001};
constexpr Protocol quick{"quick", 3, 3, 5, 0.0, 1.0, 500e-6, 2, 0.020, 1, 0.005};
constexpr Protocol standard{"standard", 10, 20, 10, 0.005, 10.0, 500e-6, 5, 0.200, 3, 0.050};

constexpr Protocol gate{"gate", 5, 10, 10, 0.005, 5.0, 500e-6, 5, 0.200, 3, 0.050};
constexpr Protocol thorough{"thorough", 20, 40, 20, 0.0025, 60.0, 500e-6, 5, 0.200, 3, 0.050};
constexpr const Protocol* all_protocols[] = {&smoke, &quick, &standard, &gate, &thorough};

constexpr std::int64_t largest_batch = 4096;
constexpr std::int64_t most_copies = 64;
constexpr double severe_deviations = 10.0 * 1.4826;  // 1.4826 MAD is one standard deviation of normal data
constexpr double least_severe = 0.05;                // where most samples show the same clock tick, MAD is 0
constexpr double severe_share = 0.05;
constexpr double noisy_ratio = 1.3;
constexpr double drift_size = 0.01;
constexpr double drift_t = 3.36;  // t(0.995, 8): two halves of five rounds

// All samples of the valid rounds per run of the program, and the log of each round's median.
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

// The 95% half-width of the mean log median; infinite where one round says nothing about the next.
double half_width(std::span<const double> log_medians) {
  if (log_medians.size() < 2) return std::numeric_limits<double>::infinity();
  const auto rounds = static_cast<double>(log_medians.size());
  return student_t_quantile(0.975, rounds - 1.0) * standard_deviation(log_medians) / std::sqrt(rounds);
}

struct Drift {
  double size = 0.0;  // of the log medians, second half minus first
  bool significant = false;
};

// Two samples with pooled variance. A middle round belongs to neither half.
Drift drift_of(std::span<const double> log_medians) {
  const std::size_t half = log_medians.size() / 2;
  if (half < 2) return {};  // no spread within a half, so nothing to compare the difference with
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
  const double limit = std::max(severe_deviations * median_absolute_deviation(logs), least_severe);
  return std::count_if(logs.begin(), logs.end(), [&](double x) { return std::fabs(x - centre) > limit; });
}

}  // namespace

std::span<const Protocol* const> protocols() { return all_protocols; }

const Protocol& protocol_of(Tier tier) {
  switch (tier) {
    case Tier::smoke: return smoke;
    case Tier::quick: return quick;
    case Tier::standard:
    case Tier::large: return standard;
  }
  return standard;
}

std::int64_t batch_for(const Protocol& protocol, CacheMode cache, double estimate_s) {
  if (cache == CacheMode::step) return 1;
  const double runs = std::ceil(protocol.min_sample_s / estimate_s);
  if (!(runs < static_cast<double>(largest_batch))) return largest_batch;  // also for an estimate of 0
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max(runs, 1.0))));
}

int copies_for(CacheMode cache, std::int64_t working_set_bytes, std::int64_t cache_bytes,
               std::int64_t available_bytes) {
  if (cache != CacheMode::cold || working_set_bytes <= 0 || working_set_bytes >= 3 * cache_bytes) return 1;
  const std::int64_t wanted = std::min(1 + 3 * cache_bytes / working_set_bytes, most_copies);
  const std::int64_t affordable = available_bytes / 4 / working_set_bytes;
  return static_cast<int>(std::max<std::int64_t>(1, std::min(wanted, affordable)));
}

bool settled(const Protocol& protocol, std::span<const RoundRecord> rounds, std::int64_t batch, double spent_s) {
  const Pooled pooled = pool(rounds, batch);
  const auto valid = static_cast<int>(pooled.log_medians.size());
  // A machine that spoils every round must not keep a case going for ever.
  if (valid >= protocol.max_rounds || static_cast<int>(rounds.size()) >= 2 * protocol.max_rounds) return true;
  if (valid < protocol.min_rounds) return false;
  return spent_s >= protocol.budget_s ||
         (protocol.half_width > 0.0 && half_width(pooled.log_medians) <= protocol.half_width);
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
  const double h = half_width(log_medians);
  s.ci95_low_ns = std::isfinite(h) ? std::exp(mean(log_medians) - h) : s.median_ns;
  s.ci95_high_ns = std::isfinite(h) ? std::exp(mean(log_medians) + h) : s.median_ns;
  const Drift drift = drift_of(log_medians);
  s.drift = drift.size;
  if (!std::isfinite(h)) s.flags.emplace_back("no interval");
  if (s.median_ns > noisy_ratio * s.min_ns) s.flags.emplace_back("noisy");
  if (std::fabs(drift.size) > drift_size && drift.significant) s.flags.emplace_back("drift");
  if (static_cast<double>(s.severe) > severe_share * static_cast<double>(s.samples)) s.flags.emplace_back("severe");
  return s;
}

}  // namespace gpubench
