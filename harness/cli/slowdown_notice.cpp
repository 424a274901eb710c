#include "harness/cli/slowdown_notice.h"

#include <fmt/format.h>

#include <set>

#include "harness/core/error.h"
#include "harness/plan/nearest.h"
#include "harness/report/text_table.h"
#include "harness/report/visible_text.h"

namespace gpubench {

void announce_slowdown(const Slowdown& slowdown, std::span<const PlannedCase> plan, const Environment& environment) {
  int slowed = 0;
  std::set<std::string> kinds;
  for (const PlannedCase& planned : plan) {
    const Program program = planned.workload->build(planned.c);
    slowed += concerns(slowdown, program) ? 1 : 0;
    for (const OpCall& op : program.ops()) kinds.emplace(op.kind.name);
  }
  const std::vector<std::string> known(kinds.begin(), kinds.end());
  if (slowed == 0) {
    throw UsageError(fmt::format("--inject-slowdown: no planned case runs an op '{}'; kinds of ops: {}{}",
                                 visible(slowdown.op), joined(known), did_you_mean(slowdown.op, known)));
  }
  environment.err << fmt::format(
      "SLOWED ON PURPOSE: the times of {} cases with op {} are made {:.3g}% longer (--inject-slowdown)\n", slowed,
      visible(slowdown.op), 100.0 * slowdown.share);
}

}  // namespace gpubench
