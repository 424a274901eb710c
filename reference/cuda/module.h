// What the program asks of libgpubench_cuda.so, which it loads when a GPU is wanted and never links.
//
// One C function, gpubench_cuda_module(), gives this table. Program and module pass C++ objects to each other, so both
// must come from one build: `build_id` is compared first, and a module of another build is refused.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/processes.h"

namespace gpubench::cuda {

struct OpenOptions {
  int ordinal = 0;  ///< which of the devices that the driver shows, as CUDA counts them
};

struct RankOptions {
  int ranks = 1;
  bool is_virtual = false;  ///< all on the first device
  OpenOptions first{};      ///< rank 0's device; the others have the ordinals after it
};

/// A process's rank, of the first so many of several processes.
struct ProcessRank {
  Processes& processes;  ///< outlives what is opened
  int rank = 0;
  int ranks = 1;
  OpenOptions device{};
};

/// A library that is really loaded.
struct LoadedLibrary {
  std::string name;     ///< "cublasLt"
  std::string version;  ///< as the library itself says, "13.1.0"
  std::string path;     ///< of the file; empty where the loader does not tell
};

struct Module {
  const char* build_id = "";
  /// Throws BackendError with what CUDA said: no driver, a driver too old, no such device.
  std::unique_ptr<Backend> (*open)(const OpenOptions& options) = nullptr;
  /// Throws as `open`; BackendError with NCCL's words, and Unsupported where NCCL is not there.
  RankSet (*open_ranks)(const RankOptions& options) = nullptr;
  /// The ordinal of the device that a process takes: that of its place on its host; of what the launcher shows to it
  /// alone, the only one. Throws BackendError where there is none.
  int (*process_device)(int place_on_host) = nullptr;
  /// By NCCL, whose id the processes exchange; all of them call it at the same time. Throws as `open_ranks`.
  std::unique_ptr<RankCollectives> (*open_process_collectives)(const ProcessRank& rank) = nullptr;
  /// cudart, cuBLASLt, cuDNN, NCCL where it is found; needs no driver.
  std::vector<LoadedLibrary> (*libraries)() = nullptr;
};

using ModuleEntry = const Module* (*)();
inline constexpr const char* module_entry_name = "gpubench_cuda_module";
inline constexpr const char* module_file_name = "libgpubench_cuda.so";

}  // namespace gpubench::cuda
