// The sim backend and its cases for the command line.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/cli/environment.h"

namespace gpubench {

/// Suite "sim": the six cases of tests/fakes/sim/sim_suite.h.
[[nodiscard]] std::span<const Suite> sim_suites();

/// Backend "sim" that follows `script`. Of scripts separated by "|" device N follows the N-th, from 0, or the last.
[[nodiscard]] std::vector<BackendEntry> sim_backends(const std::string& script);

}  // namespace gpubench
