// Interface of the MPI modules, libgpubench_openmpi.so and libgpubench_mpich.so, which the program loads when a
// launcher started several processes.
// Their C function returns this table. C++ objects cross the interface, so both sides must come from one build: the
// program compares `build_id` first and refuses other builds.
#pragma once

#include <memory>

#include "harness/core/processes.h"

namespace gpubench::mpi {

struct Module {
  const char* build_id = "";
  /// Joins the launcher's processes. `send_limit_s`: seconds until an untaken message is an error; 0: never. Throws
  /// BackendError with MPI's message, also without MPI_THREAD_MULTIPLE (calls from several threads).
  std::unique_ptr<Processes> (*join)(double send_limit_s) = nullptr;
};

using ModuleEntry = const Module* (*)();
inline constexpr const char* module_entry_name = "gpubench_mpi_module";

}  // namespace gpubench::mpi
