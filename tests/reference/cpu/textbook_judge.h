// Runs a program on the CPU backend and asks the textbook about every result: it must lie between the ends of its
// bound, as they round.
#pragma once

#include <cstdint>
#include <string>

#include "tests/reference/cpu/program_run.h"

namespace gpubench::testing {

struct BackendContract;  // tests/reference/backend_contract.h

/// Runs the program op by op, and judges each `stride`th unit of every output on the inputs as they were before its op.
/// Returns "" when all results lie within their bounds, else the first that does not: "y[7] = 1.5, expected 1.25 +-
/// 1e-7". Canaries must be intact and, unless an op updates a tensor, a second run must give the same bits.
[[nodiscard]] std::string run_and_judge(ProgramRun& run, std::int64_t stride = 1);

/// The CPU backend on that many threads, or on all that this process may use; judged by run_and_judge().
[[nodiscard]] BackendContract cpu_contract(int threads = 0);

}  // namespace gpubench::testing
