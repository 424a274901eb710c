// Which processors children may use: their libraries choose their threads by that when they start.
#pragma once

#include <sched.h>

namespace gpubench {

/// How many this process may use; 0 where the kernel does not tell.
[[nodiscard]] int usable_processors();

/// While it lives, this thread and the processes that it starts may use only `count` of its processors, those after the
/// first `skipped`.
class OnProcessors {
 public:
  /// Throws CannotMeasure where the system does not let it.
  explicit OnProcessors(int count, int skipped = 0);
  OnProcessors(const OnProcessors&) = delete;  // restores what was before
  OnProcessors& operator=(const OnProcessors&) = delete;
  ~OnProcessors() { (void)::sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_{};
};

}  // namespace gpubench
