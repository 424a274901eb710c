// gpubench-gbench: the same cases through Google Benchmark, for who has its flags and tools at hand.
//
// Every planned case is registered with manual time, one iteration and as many repetitions as it has rounds, so that a
// repetition is a round and the library's aggregates are over round medians. A case is checked, timed by the engine's
// own rounds and checked again before its first repetition is reported: one that did not pass is an error in every
// repetition, and no number of it is seen. Cases run in this process; what crashes one ends the program.
#pragma once

#include <span>
#include <string>

#include "harness/cli/environment.h"

namespace gpubench {

/// The whole program: flags that begin with --benchmark_ are the library's (filter, format, out, repetitions,
/// list_tests,
/// ...), the others those of `gpubench run` that choose and measure. Returns the exit code of a run with these verdicts
/// (exit_code.h); 0 for a list. Throws nothing.
int run_gbench(int argc, char** argv, const Environment& environment);

}  // namespace gpubench
