// A backend whose plans and kernels are the CUDA backend's, on emulated threads and host memory.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "harness/core/communicator.h"
#include "tests/reference/cuda/emulation/memory_watch.h"

namespace gpubench::cuda {
class CudaCommunicator;
}

namespace gpubench::testing {

struct EmulatedOptions {
  int multiprocessors = 3;
  bool deterministic = false;
  std::string pinned{};  ///< implementation of every op; empty: the first candidate
  int compute_capability = 90;
};

/// Ops on own kernels, and matrix products on a stand-in for cuBLASLt (emulated_cublaslt.cpp). A launch may touch only
/// its tensors and workspace. run() throws cuda::emulation::Fault for a kernel's fault.
[[nodiscard]] std::unique_ptr<Backend> open_emulated_backend(const EmulatedOptions& options = {});

using OpenCommunicator = std::function<std::unique_ptr<cuda::CudaCommunicator>(int ranks)>;

/// Several ranks on concurrent streams: the CUDA backend's queues (cuda_communicator.h) on this communicator.
[[nodiscard]] RankSet open_emulated_ranks(int ranks, const OpenCommunicator& open);

// The CUDA runtime's functions for plans and the tuner, on host memory.

/// Tables uploaded by live plans; kernels may read them.
[[nodiscard]] std::vector<cuda::emulation::Region> uploaded_tables();

/// Nanoseconds of the tuner's spins so far (emulated_tuning.cpp).
[[nodiscard]] std::vector<std::uint64_t>& spins();

}  // namespace gpubench::testing
