// Runs a program on the CPU backend and compares every result with the textbook: within its bound, with rounded ends.
#pragma once

#include <cstdint>
#include <string>

#include "tests/reference/cpu/program_run.h"

namespace gpubench::testing {

struct BackendContract;  // tests/reference/backend_contract.h

/// Runs the program op by op, and judges each `stride`th unit of every output on the inputs before the op.
/// Returns "", or the first result outside its bound: "y[7] = 1.5, expected 1.25 +- 1e-7". Canaries must be intact.
/// Unless an op updates a tensor, a second run must give the same bits.
[[nodiscard]] std::string run_and_judge(ProgramRun& run, std::int64_t stride = 1);

/// The CPU backend on `threads` threads (0: all usable), judged by run_and_judge().
[[nodiscard]] BackendContract cpu_contract(int threads = 0);

}  // namespace gpubench::testing
