// CUDA's streams and events: what is put on a stream runs later, in its order, and no sooner than the host has been
// quiet for a while. Among streams that could go on, an order is kept that need not be kind; so a wait that is missing
// shows.
#pragma once

#include <cstdint>
#include <functional>

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda::emulation {

enum class StreamOrder { oldest_first, newest_first, random };
/// For everything that is put on streams from now on. `seed`: of random order.
void set_stream_order(StreamOrder order, std::uint64_t seed = 1);

/// Runs it at its turn on the stream; right now where the stream is null.
void on_stream(cudaStream_t stream, std::function<void()> work);

/// What comes after it on the stream waits until `ready` says so.
void hold_stream(cudaStream_t stream, std::function<bool()> ready);

/// Throws what work on the stream threw.
void rethrow_fault(cudaStream_t stream);
/// Whether it is memory that cudaHostAlloc gave.
[[nodiscard]] bool is_pinned(const void* memory);

}  // namespace gpubench::cuda::emulation
