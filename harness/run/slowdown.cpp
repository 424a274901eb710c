#include "harness/run/slowdown.h"

#include <algorithm>

namespace gpubench {

bool concerns(const Slowdown& slowdown, const Program& program) {
  return std::any_of(program.ops().begin(), program.ops().end(), [&](const OpCall& op) {
    return op.phase == Phase::timed && (op.kind.name == slowdown.op || op.label == slowdown.op);
  });
}

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
