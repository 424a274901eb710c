// The module that joins processes by MPI: found beside the program, loaded where a launcher has started several.
#pragma once

#include <filesystem>
#include <memory>

#include "harness/cli/launcher.h"
#include "harness/core/processes.h"

namespace gpubench {

/// Joins the processes that the launcher has started: by the module of its library, or the one that is there, beside
/// `program` or in ../lib. `send_limit_s`: as Module::join. Throws BackendError where there is none, where it is of
/// another build or cannot be loaded, with MPI's words, and where it joins other processes than were started.
[[nodiscard]] std::unique_ptr<Processes> join_by_mpi(const std::filesystem::path& program, const LauncherPlace& place,
                                                     double send_limit_s);

}  // namespace gpubench
