#include "reference/mpi/module.h"

#include "reference/mpi/mpi_processes.h"

extern "C" __attribute__((visibility("default"))) const gpubench::mpi::Module* gpubench_mpi_module() {
  static const gpubench::mpi::Module module{GPUBENCH_BUILD_ID, gpubench::mpi::join};
  return &module;
}
