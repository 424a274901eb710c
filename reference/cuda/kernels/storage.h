// What is done to the bytes of a storage, whatever they mean: a pattern repeated over them, runs of them gathered,
// their fingerprint, a scan of their elements. harness/core/storage_content.h says what the last two come to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

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
inline constexpr int most_fingerprint_parts = 1024;
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

}  // namespace gpubench::cuda
