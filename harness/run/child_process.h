// Child processes with given descriptors and a time limit; worker processes on the supervisor's side.
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

/// The read end and the write end, closed on exec. Throws BackendError.
[[nodiscard]] std::pair<Descriptor, Descriptor> make_pipe();

struct ChildSetup {
  std::map<int, int> descriptors;  ///< the child's number -> ours; others are inherited
  bool leads_group = false;        ///< a separate process group: Ctrl-C at the terminal does not reach the child
  bool usual_signals = false;      ///< default handlers for signals that this process ignores
  bool yields = false;  ///< idle OpenMP threads spin only briefly, unless the user's environment sets their waiting
};

/// Starts `argv`, a path and its arguments, with this process's environment and no signal blocked. The kernel kills the
/// child when this process ends. Throws BackendError with the system's message.
///
/// ChildSetup::yields sets GOMP_SPINCOUNT, the spins of an idle thread of GNU's OpenMP before it sleeps. Its default
/// takes milliseconds of the processor that the awaited thread may need.
[[nodiscard]] pid_t start_child(const std::vector<std::string>& argv, const ChildSetup& setup);

/// Out-of-memory kills on this machine, including other containers, from /proc/vmstat; empty without an oom_kill line.
[[nodiscard]] std::optional<long> memory_kills(std::istream& vmstat);

/// "ended by signal 9 (Killed)" or "exited with status 1", from a status of waitpid(). For SIGKILL with a note if
/// memory_kills() grew between the child's start and end.
[[nodiscard]] std::string describe_status(int status, std::optional<long> kills_before,
                                          std::optional<long> kills_after);

/// Waits for the end of a child. A child in an uninterruptible wait for its device survives SIGKILL and is left behind.
class ChildEnd {
 public:
  explicit ChildEnd(pid_t pid);
  /// Whether the child has ended; waits up to `seconds`. Also true if waitpid() fails.
  [[nodiscard]] bool within(double seconds);
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// From waitpid(), after the end; exit status 255 if waitpid() failed.
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] std::string description() const;

 private:
  pid_t pid_;
  std::optional<long> memory_kills_;  ///< at the child's start
  int status_ = 0;
  bool ended_ = false;
};

/// Orphaned descendants of a child become this process's children, and the destructor kills them, in any group or
/// session. Construct it before the child starts and destroy it after the child's end; start no other child in between.
/// Without /proc/PID/task/TID/children nothing is found.
class Orphans {
 public:
  Orphans();
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;
  ~Orphans();

 private:
  std::vector<pid_t> before_;  ///< this process's children that stay
};

/// Thread ids of a process; none if it has ended.
[[nodiscard]] std::vector<pid_t> threads_of(pid_t process);

/// How long a process has been silent. Time in which it was ready to run and had no processor does not count.
class Silence {
 public:
  [[nodiscard]] double seconds() const { return watch_.seconds(); }
  /// Whether the silence has lasted longer than `limit_s`. Time without a processor is read only from half of that on,
  /// so that a responsive process costs nothing.
  [[nodiscard]] bool exceeds(double limit_s, pid_t process);

 private:
  Stopwatch watch_;
  std::optional<double> waited_before_s_;  ///< time without a processor, at half of the limit
};

/// A worker process. It leads a separate process group and has no stdin; its stdout goes to WorkerCommand::output_fd or
/// this process's stderr. The destructor ends its group and its orphans.
class WorkerProcess {
 public:
  /// Throws BackendError with the program's name if it cannot be started.
  explicit WorkerProcess(const WorkerCommand& command) : WorkerProcess(command, channel(), channel()) {}
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();

  [[nodiscard]] int output() const { return from_worker_.get(); }
  [[nodiscard]] int input() const { return to_worker_.get(); }

  [[nodiscard]] pid_t pid() const { return end_.pid(); }
  /// For a worker whose pipe was closed: waits up to 2 s, then ends it. Returns ChildEnd::description().
  std::string reap();
  /// Closes its input, at which a worker ends; else calls terminate().
  void dismiss();
  /// SIGTERM, 2 s, SIGKILL, each to the whole group.
  void terminate();

 private:
  using Channel = std::pair<Descriptor, Descriptor>;  // this process's end, the worker's end
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
