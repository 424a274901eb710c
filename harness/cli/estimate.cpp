#include "harness/cli/estimate.h"

#include <algorithm>

#include "harness/measure/protocol.h"

namespace gpubench {
namespace {

constexpr double flop_per_s_of_a_core = 20e9;
constexpr double bytes_per_s_of_a_core = 4e9;

}  // namespace

Estimate estimate(const PlannedCase& planned, Tier tier, int cores) {
  const Protocol& protocol = protocol_of(tier);
  const double run_s = std::max(planned.cost.flop / (flop_per_s_of_a_core * cores),
                                planned.cost.bytes / (bytes_per_s_of_a_core * cores));
  const double sample_s = std::max(protocol.min_sample_s, run_s);
  const double warmup_s = std::max(protocol.first_warmup_s, protocol.first_warmup_calls * run_s);
  const double later_warmup_s = std::max(protocol.warmup_s, protocol.warmup_calls * run_s);
  const double rounds_s = warmup_s + protocol.min_rounds * (protocol.samples * sample_s + later_warmup_s);
  const double fill_s = static_cast<double>(planned.bytes) / bytes_per_s_of_a_core;
  // Checking is designed to cost at most as much as timing.
  return {2.0 * rounds_s + fill_s, planned.bytes};
}

Estimate estimate(std::span<const PlannedCase> planned, Tier tier, int cores) {
  Estimate all;
  for (const PlannedCase& one : planned) {
    const Estimate e = estimate(one, tier, cores);
    all.seconds += e.seconds;
    all.bytes = std::max(all.bytes, e.bytes);
  }
  return all;
}

}  // namespace gpubench
