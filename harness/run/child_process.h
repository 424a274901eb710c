// Child processes with given descriptors, waited for with a limit; and worker processes, as their supervisor sees them.
#pragma once

#include <sys/types.h>

#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/file/descriptor.h"
#include "harness/run/run.h"
#include "harness/run/timing.h"

namespace gpubench {

/// The ends to read from and to write to, closed in children. Throws BackendError.
[[nodiscard]] std::pair<Descriptor, Descriptor> make_pipe();

struct ChildSetup {
  std::map<int, int> descriptors;  ///< the child's number -> ours; others are inherited
  bool leads_group = false;        ///< a process group of its own: Ctrl-C at the terminal does not reach it
  bool usual_signals = false;      ///< resets signals that this process ignores to their defaults
  bool yields = false;  ///< its idle OpenMP threads spin only briefly, unless the user has chosen how they wait
};

/// Starts `argv`, a path and its arguments, with this process's environment and no signal blocked. The child is killed
/// when this process ends, however it ends. Throws BackendError with the system's message.
///
/// GNU's OpenMP reads GOMP_SPINCOUNT: how often an idle thread looks for work before it sleeps. Its own choice lasts
/// for milliseconds, in which the thread keeps its processor from the one that it waits for.
[[nodiscard]] pid_t start_child(const std::vector<std::string>& argv, const ChildSetup& setup);

/// Out-of-memory kills on this machine, other containers included, from /proc/vmstat; empty without an oom_kill line.
[[nodiscard]] std::optional<long> memory_kills(std::istream& vmstat);

/// "ended by signal 9 (Killed)" or "exited with status 1", from a status of waitpid(). Where memory_kills() grew
/// between the child's start and end, a SIGKILL is followed by a note of it.
[[nodiscard]] std::string describe_status(int status, std::optional<long> kills_before,
                                          std::optional<long> kills_after);

/// Waits for the end of a child. One in an uninterruptible wait for its device survives even SIGKILL and is left
/// behind.
class ChildEnd {
 public:
  explicit ChildEnd(pid_t pid);
  /// Whether it has ended; waits up to `seconds`. A child that can no longer be waited for counts as ended.
  [[nodiscard]] bool within(double seconds);
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// From waitpid(), once it has ended; exit status 255 if it could not be waited for.
  [[nodiscard]] int status() const { return status_; }
  /// describe_status() of it.
  [[nodiscard]] std::string description() const;

 private:
  pid_t pid_;
  std::optional<long> memory_kills_;  ///< when it began
  int status_ = 0;
  bool ended_ = false;
};

/// What the processes of a child leave behind when they end before their own children: these become this process's, and
/// the destructor kills them, whatever group or session they have chosen. Make it before the child, destroy it after
/// the child's end; no other child may be started meanwhile. Without /proc/PID/task/TID/children nothing is found.
class Orphans {
 public:
  Orphans();
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;
  ~Orphans();

 private:
  std::vector<pid_t> before_;  ///< this process's children that stay
};

/// The threads of a process, as the kernel numbers them; none of one that has ended.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t process);

/// How long a process has been silent. On a busy machine, time in which it wanted a processor and had none does not
/// count.
class Silence {
 public:
  [[nodiscard]] double seconds() const { return watch_.seconds(); }
  /// Whether it has lasted longer than `limit_s`. Time without a processor counts from half of that on, so that nothing
  /// is read while the process answers.
  [[nodiscard]] bool exceeds(double limit_s, pid_t process);

 private:
  Stopwatch watch_;
  std::optional<double> waited_before_s_;  ///< for a processor, at half of the limit
};

/// A worker process. It leads a process group of its own; its stdout goes to our stderr, to keep our stdout clean, and
/// it has no stdin. The destructor ends its whole group, and what has left it.
class WorkerProcess {
 public:
  /// Starts `command`. Throws BackendError with the program's name if it cannot be started.
  explicit WorkerProcess(const WorkerCommand& command) : WorkerProcess(command, channel(), channel()) {}
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();

  /// The worker's output, for us to read.
  [[nodiscard]] int output() const { return from_worker_.get(); }
  /// The worker's input, for us to write.
  [[nodiscard]] int input() const { return to_worker_.get(); }

  [[nodiscard]] pid_t pid() const { return end_.pid(); }
  /// For a worker whose pipe was closed: waits up to 2 s for the process to end, then ends it. Returns what happened:
  /// "ended by signal 9 (Killed)", "exited with status 0".
  std::string reap();
  /// Closes its input, on which it ends by itself; calls terminate() if it does not.
  void dismiss();
  /// SIGTERM, 2 s, SIGKILL, each to the whole group.
  void terminate();

 private:
  using Channel = std::pair<Descriptor, Descriptor>;  // our end and its
  static Channel channel();
  WorkerProcess(const WorkerCommand& command, Channel to_worker, Channel from_worker);
  void signal_group(int signal) const;

  Orphans orphans_;
  Descriptor to_worker_;
  Descriptor from_worker_;
  ChildEnd end_;
  bool abandoned_ = false;
};

}  // namespace gpubench
