// The sim backend and its cases as the command line takes them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/cli/environment.h"

namespace gpubench {

/// One suite, "sim": the six cases of tests/fakes/sim/sim_suite.h.
[[nodiscard]] std::span<const Suite> sim_suites();

/// One backend, "sim", that follows `script`; of several with "|" between them device N follows the N-th from 0, or the
/// last.
[[nodiscard]] std::vector<BackendEntry> sim_backends(const std::string& script);

}  // namespace gpubench
