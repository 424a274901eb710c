// operator new that fails on demand, in the test's own process: the program's definition stands before the library's.
#pragma once

namespace gpubench {

/// While it lives the k-th allocation throws std::bad_alloc, and so do those after it where that is asked for; one at a
/// time, all threads count.
class FailingMemory {
 public:
  FailingMemory(long k, bool and_after);
  FailingMemory(const FailingMemory&) = delete;  // one at a time
  FailingMemory& operator=(const FailingMemory&) = delete;
  ~FailingMemory();
  /// Whether there were so many allocations that the fault was met.
  [[nodiscard]] bool struck() const;
};

}  // namespace gpubench
