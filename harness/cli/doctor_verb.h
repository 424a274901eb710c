// doctor: the findings of harness/hardware in a table, with what the backends say about themselves.
#pragma once

#include "harness/cli/environment.h"
#include "harness/cli/options.h"

namespace gpubench {

/// Always returns 0: it reports, it does not judge.
int doctor_verb(const Options& options, const Environment& environment);

}  // namespace gpubench
