// File operations that fail on demand, in the test's own process: the program's definitions of open(), write() and the
// others stand before the C library's.
//
// Only what concerns one folder is counted and can fail: paths below it, and descriptors that were opened there. So the
// k-th operation of a piece of code that reads or writes can be made to fail, for all k.
#pragma once

#include <filesystem>

namespace gpubench {

enum class Fault {
  error,        ///< the operation fails; close() closes all the same
  short_count,  ///< write() takes half, read() gives half of what it could; everything else works
  killed        ///< the process ends by SIGKILL before the operation
};

struct IoFaults {
  int first = 0;           ///< the operation that fails, from 1
  bool and_after = false;  ///< so do all after it, as on a full disk
  int error = 0;           ///< errno
  Fault fault = Fault::error;
};

/// Faults while it lives; one at a time.
class FailingIo {
 public:
  /// `folder`: the current one, by its absolute path; relative paths count as in it.
  FailingIo(const std::filesystem::path& folder, const IoFaults& faults);
  FailingIo(const FailingIo&) = delete;  // one at a time
  FailingIo& operator=(const FailingIo&) = delete;
  ~FailingIo();
  /// Whether there were so many operations that the fault was met.
  [[nodiscard]] bool struck() const;
  /// Whether a removal was made to fail: then something may be left behind.
  [[nodiscard]] bool struck_a_removal() const;
};

// operator new that fails on demand, in the test's own process: the program's definition stands before the library's.

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
