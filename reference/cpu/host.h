// Resources that the kernel grants this process: processors, memory, caches, instruction sets.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gpubench::cpu {

/// Usable processors by number; empty if unknown.
[[nodiscard]] std::vector<int> usable_processors();

/// Usable threads: the affinity, at most the cgroup's quota rounded up, at least 1.
[[nodiscard]] int usable_threads();

struct HostMemory {
  std::int64_t total_bytes = 0;      ///< of the machine or the cgroup, whichever is less
  std::int64_t available_bytes = 0;  ///< without swapping, within the cgroup's limit
};
[[nodiscard]] HostMemory host_memory();

/// Last-level cache size used for cold copies: at most 32 MiB, since virtual machines may report all of the host's
/// cache.
[[nodiscard]] std::int64_t cold_cache_bytes();

/// The first processor in /proc/cpuinfo (parsed by harness/core/processor.h).
[[nodiscard]] std::string first_processor();

// Pins threads while something is timed: a migrated thread loses its caches and spoils the sample.

/// Pins each OpenMP thread, including the caller, to a separate processor; the destructor restores the caller's
/// affinity on all threads, or keeps one set meanwhile from outside.
///
/// Does nothing if the user places threads (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY), if the numbers of threads
/// and usable processors differ (so as not to take other processes' processors), or if the system refuses.
///
/// The caller must be pinned too: otherwise it shares a busy-waiting thread's processor, and the two alternate by
/// scheduler time slices (8 ms for an op of 0.6 ms; seen on two processors).
class PinnedThreads {
 public:
  explicit PinnedThreads(int threads);
  PinnedThreads(const PinnedThreads&) = delete;  // restores affinity once
  PinnedThreads& operator=(const PinnedThreads&) = delete;
  ~PinnedThreads() { release(); }

  /// Call after the work. Stops pinning if the work started new threads (teams of several sizes do): they all inherit
  /// the processor of their creator.
  void release_if_threads_changed();

  [[nodiscard]] bool pinned() const { return threads_ > 0; }

 private:
  void release();

  cpu_set_t before_{};
  int threads_ = 0;
  std::uint64_t mark_ = 0;
};

}  // namespace gpubench::cpu
