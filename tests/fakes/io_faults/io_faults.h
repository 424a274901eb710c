// File operations of the test's process that fail on demand: definitions of open(), write() and others in the program
// take precedence over those of the C library. Counts only operations on paths below one folder and descriptors opened
// there, so that a test can make the k-th operation fail, for every k.
#pragma once

#include <filesystem>

namespace gpubench {

enum class Fault {
  error,        ///< the operation fails; close() still closes
  short_count,  ///< write() writes half, read() reads half; other operations succeed
  killed        ///< the process ends by SIGKILL before the operation
};

struct IoFaults {
  int first = 0;           ///< the operation that fails, from 1
  bool and_after = false;  ///< all later ones fail too, as on a full disk
  int error = 0;           ///< errno
  Fault fault = Fault::error;
};

/// Injects faults during its lifetime; only one may exist.
class FailingIo {
 public:
  /// `folder`: absolute path of the current folder; relative paths are in it.
  FailingIo(const std::filesystem::path& folder, const IoFaults& faults);
  FailingIo(const FailingIo&) = delete;
  FailingIo& operator=(const FailingIo&) = delete;
  ~FailingIo();
  [[nodiscard]] bool struck() const;
  /// Whether a removal failed: files may be left.
  [[nodiscard]] bool struck_a_removal() const;
};

/// During its lifetime the k-th allocation of all threads throws std::bad_alloc, and optionally all later ones. Only
/// one may exist. The program's operator new takes precedence over the library's.
class FailingMemory {
 public:
  FailingMemory(long k, bool and_after);
  FailingMemory(const FailingMemory&) = delete;
  FailingMemory& operator=(const FailingMemory&) = delete;
  ~FailingMemory();
  [[nodiscard]] bool struck() const;
};

}  // namespace gpubench
