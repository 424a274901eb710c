// The CUDA backend: one rank on one NVIDIA GPU.
#pragma once

#include <memory>

#include "reference/cuda/module.h"

namespace gpubench::cuda {

/// Throws BackendError where there is no usable driver, no such device, or a library does not start.
[[nodiscard]] std::unique_ptr<Backend> open_cuda_backend(const OpenOptions& options);

/// cudart, cuBLASLt and cuDNN as they are loaded.
[[nodiscard]] std::vector<LoadedLibrary> loaded_libraries();

}  // namespace gpubench::cuda
