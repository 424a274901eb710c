// Another run of this program, as a child: what calibrate repeats.
#pragma once

#include <string>
#include <vector>

#include "harness/run/run.h"

namespace gpubench {

/// Runs `argv` to its end; its standard output is dropped, its standard error is ours. A signal that stops this process
/// is passed on. Returns the exit code, 128 + signal where it was killed. Throws BackendError where it cannot start.
[[nodiscard]] int run_child_process(const std::vector<std::string>& argv, const StopFlag& stop);

}  // namespace gpubench
