// A run of which this is one of several processes that a launcher has started.
#pragma once

#include <functional>

#include "harness/cli/environment.h"
#include "harness/cli/launcher.h"
#include "harness/cli/options.h"

namespace gpubench {

/// Process 0 acts as a run by itself does, with the ranks of all, and its exit code is returned; any other serves it,
/// and returns 0. Where a process is lost, or does not fit, all are ended with the exit code, and this does not return.
/// Throws UsageError for what such a run has not, CannotMeasure where the processes cannot be joined.
[[nodiscard]] int act_together(Options options, const Environment& environment, const LauncherPlace& place,
                               const std::function<int(const Options&, const Environment&)>& act);

}  // namespace gpubench
