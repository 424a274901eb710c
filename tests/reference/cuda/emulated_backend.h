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

using OpenCommunicator = std::function<std::unique_ptr<cuda::CudaCommunicator>(int ranks)>;

/// Several ranks, on streams that run side by side. Their queues are the CUDA backend's own (cuda_communicator.h), on
/// this communicator.
[[nodiscard]] RankSet open_emulated_ranks(int ranks, const OpenCommunicator& open);

// What plans and the tuner ask of CUDA's runtime, answered with host memory.

/// Tables that plans have uploaded and still hold; kernels may read them.
[[nodiscard]] std::vector<cuda::emulation::Region> uploaded_tables();

/// Nanoseconds of the spins that the tuner asked for so far (emulated_tuning.cpp).
[[nodiscard]] std::vector<std::uint64_t>& spins();

}  // namespace gpubench::testing
