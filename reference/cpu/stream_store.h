// Stores that bypass the caches, for outputs that would not stay in them anyway.
//
// An ordinary store reads its cache line first (write-allocate), a third more traffic for a triad. Where the output is
// larger than what a cache can keep, that read is pure loss; smaller outputs are stored the ordinary way and stay warm.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpubench::cpu {

/// Copies `bytes` to `to` around the caches. Any alignment; whole 64-byte lines of `to` are what it is good at.
void stream_store(std::byte* to, const std::byte* from, std::size_t bytes);

/// y[i] = b[i] + factor c[i], stored around the caches.
void stream_triad(const float* b, const float* c, float factor, std::int64_t count, float* y);

namespace avx512 {
/// Whole lines of both, for processors that have AVX-512: what the two functions above run there. `to` and `y` begin a
/// line; `count` is a multiple of 16.
void copy_lines(std::byte* to, const std::byte* from, std::size_t lines);
void triad_lines(const float* b, const float* c, float factor, std::int64_t count, float* y);
}  // namespace avx512

/// Orders the streamed stores of this thread before whatever it does next. Call once before a thread is done.
void stream_fence();

}  // namespace gpubench::cpu
