// The interface of libgpubench_cuda.so, which the program loads when a GPU is requested.
// Its C function gpubench_cuda_module() returns this table. C++ objects cross the interface, so both sides must come
// from one build: the program compares `build_id` first and refuses other builds.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/processes.h"

namespace gpubench::cuda {

struct OpenOptions {
  int ordinal = 0;  ///< CUDA's index among the visible devices
};

struct RankOptions {
  int ranks = 1;
  bool is_virtual = false;  ///< all on the first device
  OpenOptions first{};      ///< rank 0's device; the others have the ordinals after it
};

struct ProcessRank {
  Processes& processes;  ///< outlives the result
  int rank = 0;
  int ranks = 1;
  OpenOptions device{};
};

struct LoadedLibrary {
  std::string name;     ///< "cublasLt"
  std::string version;  ///< as the library reports it, "13.1.0"
  std::string path;     ///< empty if the loader does not report it
};

struct Module {
  const char* build_id = "";
  /// Throws BackendError with CUDA's message: no driver, a driver too old, no such device.
  std::unique_ptr<Backend> (*open)(const OpenOptions& options) = nullptr;
  /// Throws as `open`; also BackendError with NCCL's message, and Unsupported if NCCL is missing.
  RankSet (*open_ranks)(const RankOptions& options) = nullptr;
  /// The device ordinal for a process: its place on the host, or 0 if the launcher shows it a single device. Throws
  /// BackendError if there is none.
  int (*process_device)(int place_on_host) = nullptr;
  /// Collectives by NCCL, whose id the processes exchange; all must call this at the same time. Throws as `open_ranks`.
  std::unique_ptr<RankCollectives> (*open_process_collectives)(const ProcessRank& rank) = nullptr;
  /// cudart, cuBLASLt, cuDNN, and NCCL if installed; needs no driver.
  std::vector<LoadedLibrary> (*libraries)() = nullptr;
};

using ModuleEntry = const Module* (*)();
inline constexpr const char* module_entry_name = "gpubench_cuda_module";
inline constexpr const char* module_file_name = "libgpubench_cuda.so";

}  // namespace gpubench::cuda
