// Reports that were written by other rules, read by today's: so that a flag or a figure means the same in every report.
#pragma once

#include "harness/report/report_json.h"

namespace gpubench {

/// Restates what a report of this minor version of the schema tells by rules that changed. Before 1.5 "noisy" was a
/// median above 1.3 times the minimum, and unreliable timings took part in efficiencies and were the best of a run.
void restate(Report& report, int minor);

}  // namespace gpubench
