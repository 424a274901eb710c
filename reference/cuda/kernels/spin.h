// A kernel that only takes time, so that a queue fills behind it.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gpubench::cuda {

/// Keeps the stream busy for about `nanoseconds`, on one thread.
void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream);

}  // namespace gpubench::cuda
