// The plans of a case on data made to show their arithmetic (harness/parity/precision_probe.h).
#pragma once

#include "harness/run/check.h"

namespace gpubench {

/// Probes each plan of the timed ops that offer a product, once, by up to three launches on copy 0, and adds what it
/// reads to the record; `downgraded` where that is below what the op declares and RunOptions::arithmetic does not allow
/// it, `fail` where a launch writes outside its outputs. Copy 0 holds other data after that: nothing may follow that
/// reads it.
void probe_plans(PreparedCase& prepared, const RunOptions& options, const OpJudge& judge, CaseRecord& record);

}  // namespace gpubench
