#include "harness/run/slowdown.h"

#include <algorithm>

namespace gpubench {

bool is_timed(const OpCall& call, std::string_view op) {
  return call.phase == Phase::timed && (call.kind.name == op || call.label == op);
}

bool runs_timed(const Program& program, std::string_view op) {
  return std::any_of(program.ops().begin(), program.ops().end(),
                     [op](const OpCall& call) { return is_timed(call, op); });
}

bool concerns(const Slowdown& slowdown, const Program& program) { return runs_timed(program, slowdown.op); }

void slow_down(const Slowdown& slowdown, RoundRecord& round) {
  const double factor = 1.0 + slowdown.share;
  for (double& ns : round.times.device_ns) ns *= factor;
  for (double& ns : round.times.wall_ns) ns *= factor;
  if (!round.times.ranks) return;
  for (RankTimes& rank : *round.times.ranks) {
    for (double& ns : rank.ns) ns *= factor;
  }
}

}  // namespace gpubench
