// Runs a program in several orders of threads: the textbook judges the first run, the others must give its bits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/reference/cpu/program_run.h"

namespace gpubench::testing {

struct BackendContract;  // tests/reference/backend_contract.h

struct EmulatedRun {
  std::int64_t stride = 1;  ///< stride of the judged units of an output
  int multiprocessors = 3;
  bool deterministic = false;
  std::string pinned{};  ///< implementation to choose
  int compute_capability = 90;
};

/// Runs the program on the emulated backend in four orders: forward, reverse, and two random ones, one of them with
/// small grids, so that kernels loop. `fill` sets the inputs of each run. Returns "" or the fault, as run_and_judge().
[[nodiscard]] std::string run_in_every_order(const Program& program, const std::function<void(ProgramRun&)>& fill,
                                             const EmulatedRun& how = {});

/// Candidates of the last choice (emulated_choice.cpp), which takes the pinned one, else the first.
[[nodiscard]] const std::vector<std::string>& last_candidates();

/// The emulated backend, judged by run_in_every_order().
[[nodiscard]] const BackendContract& emulated_contract();

}  // namespace gpubench::testing
