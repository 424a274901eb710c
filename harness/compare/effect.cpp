#include "harness/compare/effect.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

constexpr double borrowed_degrees = 4.0;  // weight of the suite's median or of a default

struct Side {
  double runs = 0.0;
  double mean = 0.0;
  double squares = 0.0;  // sum of squared deviations: (K - 1) v
  double round_error_squared = 0.0;
  double round_variance = 0.0;
};

Side side_of(std::span<const CaseRun> runs) {
  if (runs.empty()) throw std::invalid_argument("a side without runs has no mean");
  Side side;
  side.runs = static_cast<double>(runs.size());
  for (const CaseRun& run : runs) side.mean += run.log_median / side.runs;
  for (const CaseRun& run : runs) side.squares += (run.log_median - side.mean) * (run.log_median - side.mean);
  for (const CaseRun& run : runs) {
    const double squared = run.round_error * run.round_error / side.runs;
    side.round_error_squared += squared;
    side.round_variance += squared * std::max(run.rounds, 1);
  }
  return side;
}

bool repeated(const Evidence& one) {
  return std::min(one.baseline.size(), one.candidate.size()) >= static_cast<std::size_t>(enough_runs);
}

bool calibrated(const Evidence& one) {
  return one.prior && (one.prior->runs >= enough_calibration || (repeated(one) && one.prior->runs >= 2));
}

double pooled_variance(const Side& b, const Side& c) { return (b.squares + c.squares) / (b.runs + c.runs - 2.0); }

// The suite's usual spread; not set if no case was repeated enough.
std::optional<double> median_variance(std::span<const Evidence> cases) {
  std::vector<double> variances;
  for (const Evidence& one : cases) {
    if (repeated(one)) variances.push_back(pooled_variance(side_of(one.baseline), side_of(one.candidate)));
  }
  return variances.empty() ? std::nullopt : std::optional(median(variances));
}

double root(double variance) { return std::max(std::sqrt(variance), min_spread); }

Effect effect_of(const Evidence& one, std::optional<double> suite_variance, double assumed) {
  const Side b = side_of(one.baseline);
  const Side c = side_of(one.candidate);
  Effect effect;
  effect.delta = c.mean - b.mean;
  const double per_run = 1.0 / b.runs + 1.0 / c.runs;
  if (calibrated(one) || (repeated(one) && suite_variance)) {
    const bool known = calibrated(one);
    effect.source = known ? NoiseSource::calibration : NoiseSource::sides;
    const double prior_variance = known ? one.prior->variance : *suite_variance;
    const double prior_degrees = known ? one.prior->runs - 1.0 : borrowed_degrees;
    const bool baseline_counted = known && one.prior->from_baseline;
    effect.degrees = (baseline_counted ? 0.0 : b.runs - 1.0) + c.runs - 1.0 + prior_degrees;
    const double squares = (baseline_counted ? 0.0 : b.squares) + c.squares + prior_degrees * prior_variance;
    effect.spread = root(std::max(squares / effect.degrees, 0.5 * (b.round_variance + c.round_variance)));
    effect.usual_spread = root(prior_variance);
    effect.error = effect.spread * std::sqrt(per_run);
    return effect;
  }
  effect.degrees = borrowed_degrees;
  effect.usual_spread = assumed;
  effect.spread = std::sqrt(assumed * assumed + 0.5 * (b.round_error_squared + c.round_error_squared));
  effect.error =
      std::sqrt(assumed * assumed * per_run + b.round_error_squared / b.runs + c.round_error_squared / c.runs);
  return effect;
}

}  // namespace

Batches batches_of(std::span<const CaseRun> baseline, std::span<const CaseRun> candidate) {
  Batches batches{baseline.front().batch, baseline.front().batch};
  for (const auto side : {baseline, candidate}) {
    for (const CaseRun& run : side) {
      batches.least = std::min(batches.least, run.batch);
      batches.most = std::max(batches.most, run.batch);
    }
  }
  return batches;
}

double assumed_spread(std::string_view device_kind, bool clock_locked) {
  if (device_kind != "cuda") return 0.03;
  return clock_locked ? 0.003 : 0.01;
}

std::vector<Effect> effects_of(std::span<const Evidence> cases, double assumed) {
  const std::optional<double> suite_variance = median_variance(cases);
  std::vector<Effect> effects;
  effects.reserve(cases.size());
  for (const Evidence& one : cases) effects.push_back(effect_of(one, suite_variance, assumed));
  return effects;
}

}  // namespace gpubench
