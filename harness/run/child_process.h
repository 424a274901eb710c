// Child processes: started with what they are given, and waited for, but not for ever.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace gpubench {

struct ChildSetup {
  std::map<int, int> descriptors;  ///< the child's number -> ours; the others stay as they are
  bool leads_group = false;        ///< a process group of its own: Ctrl-C at the terminal does not reach it
  bool usual_signals = false;      ///< signals that this process ignores are not ignored, as in a fresh program
};

/// Starts `argv`, a path and its arguments, with this process's environment, no signal blocked. Killed when this
/// process ends, however it ends. Throws BackendError with the system's words.
[[nodiscard]] pid_t start_child(const std::vector<std::string>& argv, const ChildSetup& setup);

/// The end of a child. One in an uninterruptible wait for its device does not end even by SIGKILL: it is left behind.
class ChildEnd {
 public:
  explicit ChildEnd(pid_t pid) : pid_(pid) {}
  /// Whether it has ended; waits for that up to so long. What no longer can be waited for has ended.
  [[nodiscard]] bool within(double seconds);
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// As waitpid() says, once it has ended; exited with status 255 where it could not be waited for.
  [[nodiscard]] int status() const { return status_; }

 private:
  pid_t pid_;
  int status_ = 0;
  bool ended_ = false;
};

/// "ended by signal 9 (Killed)" or "exited with status 1", from what waitpid() says.
[[nodiscard]] std::string describe_status(int status);

}  // namespace gpubench
