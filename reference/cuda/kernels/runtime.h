// What the backend itself launches, whatever the ops are: work on the bytes of a storage, and what timing needs beside
// the work that is timed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

// A pattern repeated over bytes, runs of them gathered, their fingerprint, a scan of their elements.
// harness/core/storage_content.h says what the last two come to.

/// `words` consecutive words of 8 bytes; `data` is 8-byte aligned.
struct FillArgs {
  std::uint64_t* data = nullptr;
  std::uint64_t pattern = 0;
  std::int64_t words = 0;
};
void launch_fill(const FillArgs& args, cudaStream_t stream);

/// `to` receives `runs` runs of `run_bytes` bytes, run i from `from` + offsets[i]. `unit_bytes`, a power of two of at
/// most 16, divides both addresses, the offsets and `run_bytes`.
struct GatherArgs {
  const void* from = nullptr;
  const std::int64_t* offsets = nullptr;
  void* to = nullptr;
  std::int64_t runs = 0;
  std::int64_t run_bytes = 0;
  int unit_bytes = 1;
};
void launch_gather(const GatherArgs& args, cudaStream_t stream);

/// Sums of the terms of the fingerprint of `bytes` bytes, one for each block: parts[i], for i <
/// fingerprint_parts(bytes). Their sum is that of all terms. `data` is 16-byte aligned.
struct FingerprintArgs {
  const std::uint64_t* data = nullptr;
  std::int64_t bytes = 0;
  std::uint64_t* parts = nullptr;
};
inline constexpr int max_fingerprint_parts = 1024;
[[nodiscard]] int fingerprint_parts(std::int64_t bytes);
void launch_fingerprint(const FingerprintArgs& args, cudaStream_t stream);

/// As ChunkScan, in memory.
struct ScannedChunk {
  std::int32_t unwritten, nan, infinite, finite;
  std::uint64_t largest, smallest;
};

/// Chunks [first_chunk, first_chunk + chunk_count) of `chunk_elements` elements each, a multiple of 16, of the rows at
/// `data`: found[i] is what is in chunk first_chunk + i. The element's bits are looked at as ScanPattern says.
struct ScanArgs {
  const void* data = nullptr;
  int element_bytes = 1;
  std::int64_t rows = 1, columns = 1, stride = 1;
  std::uint64_t mask = 0, pattern = 0, poison = 0, infinity = 0, magnitude = 0;
  std::int64_t chunk_elements = 1, first_chunk = 0, chunk_count = 0;
  ScannedChunk* found = nullptr;
};
void launch_scan(const ScanArgs& args, cudaStream_t stream);

// Time that passes while a queue fills, and data.

/// Keeps the stream busy for about `nanoseconds`, on one thread.
void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream);

/// Keeps the stream busy until `*opened`, which the host may write meanwhile, is at least `turn`, but not longer than
/// `limit_ns` nanoseconds.
void launch_gate(const std::uint64_t* opened, std::uint64_t turn, std::uint64_t limit_ns, cudaStream_t stream);

enum class ScrambleType : std::uint8_t { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, f4_pairs, i32, u8 };

/// Fills `count` elements with numbers of both signs and magnitudes in [0.25, 2) times 2^exponent, by hashing seed and
/// index; integers are 0 and 1, valid as indices, labels and masks, plus `exponent`; bytes of two f4 are any.
/// `exponent`: so that all are normal numbers. Zeros would cost less power, and so run faster than anything real.
void launch_scramble(ScrambleType type, void* data, std::size_t count, std::uint64_t seed, int exponent,
                     cudaStream_t stream);

}  // namespace gpubench::cuda
