// Launches of the backend itself: fill, gather, fingerprint and scan of memory; delays and data for timing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

// The fingerprint and the scan are defined in harness/core/storage_content.h.

/// `words` consecutive 8-byte words; `data` is 8-byte aligned.
struct FillArgs {
  std::uint64_t* data = nullptr;
  std::uint64_t pattern = 0;
  std::int64_t words = 0;
};
void launch_fill(const FillArgs& args, cudaStream_t stream);

/// Copies `runs` runs of `run_bytes` bytes to `to`, run i from `from` + offsets[i]. `unit_bytes`, a power of two of at
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

/// Partial sums of the fingerprint of `bytes` bytes, one per block: parts[i] for i < fingerprint_parts(bytes). `data`
/// is 16-byte aligned.
struct FingerprintArgs {
  const std::uint64_t* data = nullptr;
  std::int64_t bytes = 0;
  std::uint64_t* parts = nullptr;
};
inline constexpr int max_fingerprint_parts = 1024;
[[nodiscard]] int fingerprint_parts(std::int64_t bytes);
void launch_fingerprint(const FingerprintArgs& args, cudaStream_t stream);

/// ChunkScan in device memory.
struct ScannedChunk {
  std::int32_t unwritten, nan, infinite, finite;
  std::uint64_t largest, smallest;
};

/// Scans chunks [first_chunk, first_chunk + chunk_count) of `chunk_elements` elements (a multiple of 16) of the rows at
/// `data`: found[i] describes chunk first_chunk + i. ScanPattern defines how bits are classified.
struct ScanArgs {
  const void* data = nullptr;
  int element_bytes = 1;
  std::int64_t rows = 1, columns = 1, stride = 1;
  std::uint64_t mask = 0, pattern = 0, poison = 0, infinity = 0, magnitude = 0;
  std::int64_t chunk_elements = 1, first_chunk = 0, chunk_count = 0;
  ScannedChunk* found = nullptr;
};
void launch_scan(const ScanArgs& args, cudaStream_t stream);

/// Occupies the stream for about `nanoseconds`, with one thread.
void launch_spin(std::uint64_t nanoseconds, cudaStream_t stream);

/// Blocks the stream until `*opened`, which the host may write meanwhile, is at least `turn`, or for at most `limit_ns`
/// nanoseconds.
void launch_gate(const std::uint64_t* opened, std::uint64_t turn, std::uint64_t limit_ns, cudaStream_t stream);

enum class ScrambleType : std::uint8_t { f64, f32, f16, bf16, f8_e4m3, f8_e5m2, f4_pairs, i32, u8 };

/// Fills `count` elements with numbers of both signs and magnitudes in [0.25, 2) times 2^exponent, hashed from seed and
/// index. Integers are 0 and 1 (valid indices, labels and masks) plus `exponent`; pairs of f4 are random bytes.
/// Choose `exponent` so that all numbers are normal. Zeros would draw less power and run faster than real data.
void launch_scramble(ScrambleType type, void* data, std::size_t count, std::uint64_t seed, int exponent,
                     cudaStream_t stream);

}  // namespace gpubench::cuda
