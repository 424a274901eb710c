// The CUDA backend: one rank on one NVIDIA GPU, or several.
#pragma once

#include <memory>

#include "reference/cuda/kernels/launch.h"
#include "reference/cuda/module.h"

namespace gpubench::cuda {

/// Throws BackendError where there is no usable driver, no such device, or a library does not start.
[[nodiscard]] std::unique_ptr<Backend> open_cuda_backend(const OpenOptions& options);

/// A backend, and the stream that its work is enqueued on.
struct OpenedDevice {
  std::unique_ptr<Backend> backend;
  cudaStream_t stream = nullptr;  ///< the backend's
};
/// Throws as open_cuda_backend().
[[nodiscard]] OpenedDevice open_cuda_device(const OpenOptions& options);

/// Several ranks: one on each of several GPUs, or all on one, as Module::open_ranks. A virtual set is flagged
/// "virtual".
[[nodiscard]] RankSet open_cuda_ranks(const RankOptions& options);

/// Module::process_device.
[[nodiscard]] int process_device(int place_on_host);
/// Module::open_process_collectives.
[[nodiscard]] std::unique_ptr<RankCollectives> open_process_collectives(const ProcessRank& rank);

/// cudart, cuBLASLt and cuDNN as they are loaded.
[[nodiscard]] std::vector<LoadedLibrary> loaded_libraries();
/// These and NCCL, which is loaded for the purpose where it is found.
[[nodiscard]] std::vector<LoadedLibrary> all_libraries();

}  // namespace gpubench::cuda
