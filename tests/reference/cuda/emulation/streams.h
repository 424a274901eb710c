// CUDA's streams and events. Work on a stream runs later, in order, once the host has been quiet for a while. The order
// among ready streams is configurable and may be unfavourable, which reveals missing waits.
#pragma once

#include <cstdint>
#include <functional>

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda::emulation {

enum class StreamOrder { oldest_first, newest_first, random };
/// For later work on streams. `seed`: of the random order.
void set_stream_order(StreamOrder order, std::uint64_t seed = 1);

/// Runs the work in its turn on the stream, or at once if the stream is null.
void on_stream(cudaStream_t stream, std::function<void()> work);

/// Later work on the stream waits until `ready` returns true.
void hold_stream(cudaStream_t stream, std::function<bool()> ready);

/// Rethrows an exception of work on the stream.
void rethrow_fault(cudaStream_t stream);
/// Whether cudaHostAlloc returned it.
[[nodiscard]] bool is_pinned(const void* memory);

}  // namespace gpubench::cuda::emulation
