// report: the page of one report or of several, and what else is made of a report that is already written. No device,
// no backend.
#pragma once

#include "harness/cli/environment.h"
#include "harness/cli/options.h"

namespace gpubench {

/// Writes the HTML page beside the first report (or to -o), and what --svg, --markdown, --csv and --junit ask for. Says
/// on standard error what was written. Throws UsageError where a report does not hold ("file:path: why") or a place
/// cannot be written; files are the old ones or whole new ones.
int page_verb(const Options& options, const Environment& environment);

}  // namespace gpubench
