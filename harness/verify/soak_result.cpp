// What intervals and findings of a soak add up to.
#include <cmath>
#include <span>
#include <utility>

#include "harness/verify/soak.h"

namespace gpubench {
namespace {

constexpr double confidence = 0.95;

double rate_of(std::span<const SoakInterval> intervals) {
  double launches = 0.0, seconds = 0.0;
  for (const SoakInterval& interval : intervals) {
    launches += static_cast<double>(interval.launches);
    seconds += interval.device_s;
  }
  return seconds > 0.0 ? launches / seconds : 0.0;
}

}  // namespace

// (1 - rate)^trials = 1 - confidence.
double excluded_rate(std::int64_t trials) {
  return trials > 0 ? -std::expm1(std::log1p(-confidence) / static_cast<double>(trials)) : 1.0;
}

void SoakResult::add(SoakInterval interval) {
  seconds += interval.seconds;
  device_s += interval.device_s;
  clearing_s += interval.clearing_s;
  comparing_s += interval.comparing_s;
  launches += interval.launches;
  ops += interval.ops;
  flop += interval.flop;
  intervals.push_back(std::move(interval));
}

void SoakResult::add(Divergence divergence) {
  ++diverged;
  if (divergences.size() < most_soak_findings) divergences.push_back(std::move(divergence));
}

void SoakResult::add_wrong(std::string what) {
  ++rejected;
  if (wrong.size() < most_soak_findings) wrong.push_back(std::move(what));
}

double SoakResult::burst_rate() const { return intervals.empty() ? 0.0 : rate_of(std::span(intervals).first(1)); }

double SoakResult::sustained_rate() const { return rate_of(std::span(intervals).subspan(intervals.size() / 2)); }

}  // namespace gpubench
