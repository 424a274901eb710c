// Whether this process was started as one of several, by mpirun or srun: their variables say so, and nothing else is
// asked. Joins them by the module of an MPI, which is found beside the program.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "harness/core/processes.h"

namespace gpubench {

struct LauncherPlace {
  int rank = 0;
  int processes = 1;
  std::string launcher = {};      ///< "mpirun of Open MPI"; empty where there is none
  std::string library = {};       ///< whose module joins them: "openmpi", "mpich"
  bool several_commands = false;  ///< the launcher was given more than one command line (mpirun ... : ...)
};

/// By OMPI_COMM_WORLD_SIZE and _RANK, PMI_SIZE and PMI_RANK (MPICH's mpirun), SLURM_STEP_NUM_TASKS and SLURM_PROCID
/// (srun; with PMIX_RANK Open MPI's); several commands by OMPI_NUM_APP_CTX. `variable`: its value, "" where unset.
/// Throws UsageError where they are no numbers that can be.
[[nodiscard]] LauncherPlace launcher_place(const std::function<std::string(const char*)>& variable);

/// Joins the processes that the launcher has started: by the module of its library, or the one that is there, beside
/// `program` or in ../lib. `send_limit_s`: as Module::join. Throws BackendError where there is none, where it is of
/// another build or cannot be loaded, with MPI's words, and where it joins other processes than were started.
[[nodiscard]] std::unique_ptr<Processes> join_by_mpi(const std::filesystem::path& program, const LauncherPlace& place,
                                                     double send_limit_s);

}  // namespace gpubench
