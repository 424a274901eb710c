// Runs a program on the CPU backend and asks the textbook about every result: it must lie between the ends of its
// bound, as they round.
#pragma once

#include <cstdint>
#include <string>

#include "tests/reference/cpu/program_run.h"

namespace gpubench::testing {

/// Runs the program, which has one op, and judges each `stride`th unit of every output on the inputs as they were
/// before. Returns "" when all results lie within their bounds, else the first that does not: "y[7] = 1.5,
/// expected 1.25 +- 1e-7". Canaries must be intact and a second run from the same inputs must give the same bits.
[[nodiscard]] std::string run_and_judge(ProgramRun& run, std::int64_t stride = 1);

}  // namespace gpubench::testing
