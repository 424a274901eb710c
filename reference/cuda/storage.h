// What the CUDA backend does to its memory, and finds out about it, by own kernels (kernels/runtime.h): the device's
// part of Backend::fill, gather, scan and fingerprint.
#pragma once

#include <memory>

#include "harness/core/backend.h"
#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// Backend's own way takes over where kernels can't: at addresses that are not aligned for them.
class StorageKernels {
 public:
  /// `backend`: that of `stream`, whose write() and read() are ordered behind the kernels. Takes 8 MiB of the current
  /// device's memory; throws BackendError where there is none.
  StorageKernels(Backend& backend, cudaStream_t stream);

  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes);
  void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets);
  void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows);
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes);

 private:
  Backend& backend_;
  cudaStream_t stream_;
  std::shared_ptr<std::byte> questions_;  ///< offsets, on their way to the device
  std::shared_ptr<std::byte> answers_;    ///< on their way back
};

}  // namespace gpubench::cuda
