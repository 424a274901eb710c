// A backend whose plans and kernels are the CUDA backend's, on emulated threads and host memory.
#pragma once

#include <memory>

#include "harness/core/backend.h"

namespace gpubench::testing {

/// The ops on own kernels, of which each launch may touch its tensors and workspace only. `multiprocessors` is what
/// plans are told. Kernels' faults are thrown by run() as cuda::emulation::Fault.
[[nodiscard]] std::unique_ptr<Backend> open_emulated_backend(int multiprocessors = 3);

}  // namespace gpubench::testing
