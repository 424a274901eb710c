// Kernels that only take time, so that a queue fills behind them.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace gpubench::cuda {

/// Keeps the stream busy for about `nanoseconds`, on one thread.
void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream);

/// Keeps the stream busy until `*opened`, which the host may write meanwhile, is at least `turn`, but not longer than
/// `limit_ns` nanoseconds.
void launch_gate(const std::uint64_t* opened, std::uint64_t turn, std::uint64_t limit_ns, cudaStream_t stream);

}  // namespace gpubench::cuda
