// Threads that stay where they are while something is timed: one that the scheduler moves loses its caches, and a
// sample in which that happened says more about the scheduler than about the work.
#pragma once

#include <sched.h>

namespace gpubench::cpu {

/// While it lives, each of the calling thread's OpenMP threads keeps to one processor of its own, and leaves one to the
/// calling thread; afterwards all may run where that might. The calling thread itself is not bound: threads that are
/// started meanwhile (a smaller team ends some, the next larger one starts new ones) would all be bound to its
/// processor. Does nothing where the user places threads (OMP_PROC_BIND, OMP_PLACES,
/// GOMP_CPU_AFFINITY), where there are not exactly as many threads as processors to run on (nobody else's processor is
/// taken), and where the system refuses.
class PinnedThreads {
 public:
  explicit PinnedThreads(int threads);
  PinnedThreads(const PinnedThreads&) = delete;  // it gives back what it took, once
  PinnedThreads& operator=(const PinnedThreads&) = delete;
  ~PinnedThreads();

  [[nodiscard]] bool pinned() const { return threads_ > 0; }

 private:
  cpu_set_t before_{};
  int threads_ = 0;  ///< that were pinned
};

}  // namespace gpubench::cpu
