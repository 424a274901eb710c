// gemm on cuBLASLt.
#pragma once

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Of the algorithms that the library's heuristics propose, the fastest on this device.
[[nodiscard]] Plan plan_gemm(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);

}  // namespace gpubench::cuda
