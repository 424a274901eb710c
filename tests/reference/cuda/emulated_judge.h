// A program under every order of threads: the textbook judges the first run, the others must give its bits.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/reference/cpu/program_run.h"

namespace gpubench::testing {

struct BackendContract;  // tests/reference/backend_contract.h

/// What is different from run to run.
struct EmulatedRun {
  std::int64_t stride = 1;  ///< every how many units of an output are judged
  int multiprocessors = 3;
  bool deterministic = false;
  std::string pinned{};  ///< the implementation to take
  int compute_capability = 90;
};

/// Runs the program on the emulated backend: forward, in reverse, and in two random orders, one of them with grids so
/// small that kernels walk on, each time on what `fill` sets. Returns "" when all is well, else what is not, as
/// run_and_judge() does.
[[nodiscard]] std::string run_in_every_order(const Program& program, const std::function<void(ProgramRun&)>& fill,
                                             const EmulatedRun& how = {});

/// The implementations that the last choice was among, where there is no clock (emulated_choice.cpp). It fell on the
/// one that the plan is pinned to, else on the first.
[[nodiscard]] const std::vector<std::string>& last_candidates();

/// The emulated backend, judged by run_in_every_order().
[[nodiscard]] const BackendContract& emulated_contract();

}  // namespace gpubench::testing
