// The CPU backend: oneDNN for contractions, own vectorized OpenMP kernels for other ops.
#pragma once

#include <memory>

#include "harness/core/backend.h"
#include "harness/core/communicator.h"

namespace gpubench {

/// One rank on all usable cores (affinity and cgroup quota), or on `threads` of them. Throws BackendError if oneDNN
/// does not start.
[[nodiscard]] std::unique_ptr<Backend> open_cpu_backend(int threads = 0);

/// `ranks` CPU backends, each bound to an equal share of the usable processors, and a communicator in shared memory.
/// With more ranks than processors, each has one unbound thread and the set is flagged "oversubscribed". Throws
/// BackendError unless 1 <= ranks <= 64.
[[nodiscard]] RankSet open_cpu_ranks(int ranks);

struct CpuShare {
  int threads = 1;
  bool oversubscribed = false;  ///< more processes than processors
};

/// Binds this process to the `place`-th of `processes` equal shares of the usable processors; with more processes than
/// processors, binds nothing. Call before starting other threads.
[[nodiscard]] CpuShare take_cpu_share(int place, int processes);

/// The communicator alone, for groups of any ranks; each rank uses `threads` threads.
[[nodiscard]] std::unique_ptr<Communicator> open_cpu_communicator(int threads, bool oversubscribed);

}  // namespace gpubench
