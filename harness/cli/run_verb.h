// run: plans, opens the report, runs every case in a worker, tells what came out.
#pragma once

#include "harness/cli/environment.h"
#include "harness/cli/options.h"

namespace gpubench {

/// `words`: the command line as typed, without the program's name; a worker is started with the same. Returns the exit
/// code. Throws UsageError before anything ran, CannotMeasure where nothing can.
int run_verb(const Options& options, std::span<const std::string> words, const Environment& environment);

}  // namespace gpubench
