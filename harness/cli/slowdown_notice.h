// What a run with --inject-slowdown says before it starts.
#pragma once

#include <span>

#include "harness/cli/environment.h"
#include "harness/plan/plan.h"
#include "harness/run/slowdown.h"

namespace gpubench {

/// Tells on standard error how many cases are slowed on purpose: nobody may take such a run for an honest one. Throws
/// UsageError, with the nearest kind of op, where no planned case runs the op.
void announce_slowdown(const Slowdown& slowdown, std::span<const PlannedCase> plan, const Environment& environment);

}  // namespace gpubench
