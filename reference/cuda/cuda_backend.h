// The CUDA backend: one rank on one NVIDIA GPU, or several.
#pragma once

#include <memory>

#include "harness/core/backend.h"
#include "reference/cuda/kernels/launch.h"
#include "reference/cuda/module.h"

namespace gpubench::cuda {

/// Throws BackendError where there is no usable driver, no such device, or a library does not start.
[[nodiscard]] std::unique_ptr<Backend> open_cuda_backend(const OpenOptions& options);

/// A backend, and the stream that its work is enqueued on.
struct OpenedDevice {
  std::unique_ptr<Backend> backend;
  cudaStream_t stream = nullptr;  ///< the backend's
};
/// Throws as open_cuda_backend().
[[nodiscard]] OpenedDevice open_cuda_device(const OpenOptions& options);

/// Several ranks: one on each of several GPUs, or all on one, as Module::open_ranks. A virtual set is flagged
/// "virtual".
[[nodiscard]] RankSet open_cuda_ranks(const RankOptions& options);

/// Module::process_device.
[[nodiscard]] int process_device(int place_on_host);
/// Module::open_process_collectives.
[[nodiscard]] std::unique_ptr<RankCollectives> open_process_collectives(const ProcessRank& rank);

/// cudart, cuBLASLt and cuDNN as they are loaded.
[[nodiscard]] std::vector<LoadedLibrary> loaded_libraries();
/// These and NCCL, which is loaded for the purpose where it is found.
[[nodiscard]] std::vector<LoadedLibrary> all_libraries();

// What the CUDA backend does to its memory, and finds out about it, by own kernels (kernels/runtime.h): the device's
// part of Backend::fill, gather, scan and fingerprint.

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
