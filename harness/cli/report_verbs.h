// validate and export: what is done with a report that is already written. No device, no backend.
#pragma once

#include "harness/cli/environment.h"
#include "harness/cli/options.h"

namespace gpubench {

/// Prints each file with everything that is wrong with it. Returns 0 where all hold, else 2.
int validate_verb(const Options& options, const Environment& environment);

/// Writes the report in another format. Throws UsageError where it cannot be read or told (exit 2).
int export_verb(const Options& options, const Environment& environment);

}  // namespace gpubench
