// What a supervisor sees of its worker from outside, whatever the code in there does: whether the code that measures
// was changed in memory, and whether the worker's clock runs as its own.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

namespace gpubench {

/// Compares the executable code of the process's own program, of its C library and of the kernel's vDSO with their
/// files (the vDSO with this process's): "the worker's code was changed in memory: libc.so.6 at 0xd5a20". Empty where
/// nothing was, and where it cannot be read: the process is gone, or the system refuses. It sees neither data (tables
/// of function pointers) nor code of other libraries.
[[nodiscard]] std::string changed_code(pid_t process);

/// Whether changed_code() can look into this process at all; the reason, else empty.
[[nodiscard]] std::string why_code_is_hidden(pid_t process);

/// Compares the time stamps of a worker's messages with the supervisor's clock; both are the system's monotonic clock,
/// so honest ones differ only by how long a message was under way.
class WorkerClock {
 public:
  /// A message with the stamp `sent_s` came at `now_s`; at `empty_s` nothing had come yet, so it was sent later than
  /// that. Returns the fault, if there is one: a stamp from the future, or two messages in a row that were stamped more
  /// than 50 ms + 1% of the worker's age before they were sent. (A worker that loses its processor between the stamp
  /// and sending is late once.)
  [[nodiscard]] std::optional<std::string> fault(double sent_s, double empty_s, double now_s);

 private:
  std::optional<double> first_s_;
  bool late_before_ = false;
};

/// Seconds of the system's monotonic clock.
[[nodiscard]] double monotonic_s();

}  // namespace gpubench
