// A backend whose plans and kernels are the CUDA backend's, on emulated threads and host memory.
#pragma once

#include <memory>
#include <string>

#include "harness/core/backend.h"

namespace gpubench::testing {

/// What plans are told.
struct EmulatedOptions {
  int multiprocessors = 3;
  bool deterministic = false;
  std::string pinned{};  ///< the implementation of every op; empty: the first candidate
  int compute_capability = 90;
};

/// The ops on own kernels, and matrix products on a stand-in for cuBLASLt (emulated_cublaslt.cpp). Each launch may
/// touch its tensors and workspace only. Kernels' faults are thrown by run() as cuda::emulation::Fault.
[[nodiscard]] std::unique_ptr<Backend> open_emulated_backend(const EmulatedOptions& options = {});

}  // namespace gpubench::testing
