// What the host offers this process: processors, memory, caches and instruction sets, as the kernel reports them.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gpubench::cpu {

/// The processors that this process may run on, by number; none where the system does not say.
[[nodiscard]] std::vector<int> usable_processors();

/// How many threads this process may run at once: its affinity, at most the cgroup's quota rounded up, at least 1.
[[nodiscard]] int usable_threads();

struct HostMemory {
  std::int64_t total_bytes = 0;      ///< of the machine, or of the cgroup where that is less
  std::int64_t available_bytes = 0;  ///< without swapping, within the cgroup's limit
};
[[nodiscard]] HostMemory host_memory();

/// Bytes of the last-level cache as counted for cold copies: at most 32 MiB, since virtual machines may claim all of
/// the host's cache.
[[nodiscard]] std::int64_t cold_cache_bytes();

/// What /proc/cpuinfo says of the first processor (harness/core/processor.h reads it).
[[nodiscard]] std::string first_processor();

// Threads that stay where they are while something is timed: one that the scheduler moves loses its caches, and a
// sample in which that happened says more about the scheduler than about the work.

/// While it lives, each of the calling thread's OpenMP threads, the calling one too, keeps to one processor of its own;
/// afterwards all have the calling thread's former processors, or those that something else has set meanwhile. Does
/// nothing where the user places threads (OMP_PROC_BIND, OMP_PLACES, GOMP_CPU_AFFINITY), where there are not exactly as
/// many threads as processors to run on (so no other process's processor is taken), and where the system refuses.
///
/// The calling thread must be bound as well: left free, it ends up on the processor of another thread, which waits in a
/// busy loop, and the two alternate by scheduler time slices (8 ms for an op of 0.6 ms; seen on two processors).
class PinnedThreads {
 public:
  explicit PinnedThreads(int threads);
  PinnedThreads(const PinnedThreads&) = delete;  // it gives back what it took, once
  PinnedThreads& operator=(const PinnedThreads&) = delete;
  ~PinnedThreads() { release(); }

  /// Call it once the work has run. It stops binding where the work ended threads and started new ones (teams of
  /// several sizes do), since those are all bound to the processor of the thread that started them.
  void release_if_threads_changed();

  [[nodiscard]] bool pinned() const { return threads_ > 0; }

 private:
  void release();

  cpu_set_t before_{};
  int threads_ = 0;  ///< that were pinned
  std::uint64_t mark_ = 0;
};

}  // namespace gpubench::cpu
