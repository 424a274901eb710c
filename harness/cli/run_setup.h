// What a run is given by its flags and its surroundings: pins, remembered choices, sensors, ranks.
#pragma once

#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/run/run.h"

namespace gpubench {

/// Throws UsageError where --pin names no report that holds.
[[nodiscard]] RunOptions run_options(const Options& options, Tier tier, const Environment& environment,
                                     const DeviceChoice& device);

}  // namespace gpubench
