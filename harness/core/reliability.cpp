#include "harness/core/reliability.h"

#include <cmath>

namespace gpubench {

std::optional<double> half_width(const Summary& summary) {
  const double half = 0.5 * (summary.ci95_high_ns - summary.ci95_low_ns) / summary.median_ns;
  if (summary.rounds < 2 || !(summary.median_ns > 0.0) || !std::isfinite(half)) return std::nullopt;
  return half;
}

bool timing_unreliable(const Summary& summary) {
  if (summary.rounds < 1) return false;  // nothing was timed: nothing to doubt
  const std::optional<double> half = half_width(summary);
  return !half || !(*half <= most_half_width);
}

}  // namespace gpubench
