// The CUDA backend: one rank on one NVIDIA GPU, or several.
#pragma once

#include <memory>

#include "harness/core/backend.h"
#include "reference/cuda/kernels/launch.h"
#include "reference/cuda/module.h"

namespace gpubench::cuda {

/// Throws BackendError without a usable driver, without such a device, or if a library does not start.
[[nodiscard]] std::unique_ptr<Backend> open_cuda_backend(const OpenOptions& options);

struct OpenedDevice {
  std::unique_ptr<Backend> backend;
  cudaStream_t stream = nullptr;
};
/// Throws as open_cuda_backend().
[[nodiscard]] OpenedDevice open_cuda_device(const OpenOptions& options);

/// As Module::open_ranks: one rank per GPU, or all on one GPU, flagged "virtual".
[[nodiscard]] RankSet open_cuda_ranks(const RankOptions& options);

/// Module::process_device.
[[nodiscard]] int process_device(int place_on_host);
/// Module::open_process_collectives.
[[nodiscard]] std::unique_ptr<RankCollectives> open_process_collectives(const ProcessRank& rank);

/// The loaded cudart, cuBLASLt and cuDNN.
[[nodiscard]] std::vector<LoadedLibrary> loaded_libraries();
/// Also NCCL, which this function loads if it is installed.
[[nodiscard]] std::vector<LoadedLibrary> all_libraries();

/// Backend::fill, gather, scan and fingerprint by own kernels (kernels/runtime.h). Addresses that are not aligned for
/// kernels take Backend's implementations.
class StorageKernels {
 public:
  /// `stream` must be `backend`'s: its write() and read() are ordered behind the kernels. Takes 8 MiB of the current
  /// device's memory. Throws BackendError if that fails.
  StorageKernels(Backend& backend, cudaStream_t stream);

  void fill(std::byte* device, std::span<const std::byte> pattern, std::size_t bytes);
  void gather(std::span<std::byte> host, const std::byte* device, std::span<const std::int64_t> offsets);
  void scan(std::span<ChunkScan> chunks, const std::byte* device, DType type, const RowView& rows);
  [[nodiscard]] std::uint64_t fingerprint(const std::byte* device, std::size_t bytes);

 private:
  Backend& backend_;
  cudaStream_t stream_;
  std::shared_ptr<std::byte> questions_;  ///< offsets, copied to the device
  std::shared_ptr<std::byte> answers_;    ///< results, copied to the host
};

}  // namespace gpubench::cuda
