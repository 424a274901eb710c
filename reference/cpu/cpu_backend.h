// The CPU backend: oneDNN for contractions, own vectorized OpenMP code for the rest.
#pragma once

#include <memory>

#include "harness/core/backend.h"

namespace gpubench {

/// One rank on all cores this process may use (affinity and cgroup quota respected), or on `threads` of them.
/// Throws BackendError when oneDNN cannot start.
[[nodiscard]] std::unique_ptr<Backend> open_cpu_backend(int threads = 0);

}  // namespace gpubench
