// The backends of the real programs: the CPU's, and the CUDA module where there is one.
#pragma once

#include <vector>

#include "harness/cli/environment.h"

namespace gpubench {

/// `argv0`: of the program, beside which the module lies.
[[nodiscard]] std::vector<BackendEntry> built_in_backends(const char* argv0);

}  // namespace gpubench
