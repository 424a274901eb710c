// The CPU backend: oneDNN for contractions, own vectorized OpenMP code for the rest.
#pragma once

#include <memory>

#include "harness/core/backend.h"
#include "harness/core/communicator.h"

namespace gpubench {

/// One rank on all cores this process may use (affinity and cgroup quota respected), or on `threads` of them.
/// Throws BackendError when oneDNN cannot start.
[[nodiscard]] std::unique_ptr<Backend> open_cpu_backend(int threads = 0);

// Several ranks on one machine's processors.

/// `ranks` CPU backends, each on an equal share of the processors that this process may use, and a communicator through
/// their shared memory. With more ranks than processors each has one thread, they are bound to none, and the set is
/// flagged "oversubscribed". Throws BackendError for fewer than one rank, or more than 64.
[[nodiscard]] RankSet open_cpu_ranks(int ranks);

/// The threads that one of several processes may have.
struct CpuShare {
  int threads = 1;
  bool oversubscribed = false;  ///< there are more processes than processors
};

/// Of `processes` that may all run on the processors that this one may: binds this process to the `place`-th of as many
/// equal shares of them. Where there are more processes than processors, to none. To be called before other threads are
/// started.
[[nodiscard]] CpuShare take_cpu_share(int place, int processes);

/// The communicator alone, for groups of any ranks: `threads` of each rank share its part of the work.
[[nodiscard]] std::unique_ptr<Communicator> open_cpu_communicator(int threads, bool oversubscribed);

}  // namespace gpubench
