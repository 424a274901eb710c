// What the program asks of a module that joins processes by MPI, libgpubench_openmpi.so or libgpubench_mpich.so, which
// it loads where a launcher has started several processes and never links.
//
// One C function gives this table. Program and module pass C++ objects to each other, so both must come from one build:
// `build_id` is compared first, and a module of another build is refused.
#pragma once

#include <memory>

#include "harness/core/processes.h"

namespace gpubench::mpi {

struct Module {
  const char* build_id = "";
  /// Joins the processes that the launcher started. `send_limit_s`: so long may another process not take a message; 0:
  /// for ever. Throws BackendError with MPI's words, and where this MPI has no calls from several threads
  /// (MPI_THREAD_MULTIPLE).
  std::unique_ptr<Processes> (*join)(double send_limit_s) = nullptr;
};

using ModuleEntry = const Module* (*)();
inline constexpr const char* module_entry_name = "gpubench_mpi_module";

}  // namespace gpubench::mpi
