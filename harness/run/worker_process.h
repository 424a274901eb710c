// A worker process as its supervisor sees it: started, spoken to, ended, and told what became of it.
#pragma once

#include <string>
#include <utility>

#include "harness/core/descriptor.h"
#include "harness/run/child_process.h"
#include "harness/run/run.h"

namespace gpubench {

/// Leads a process group of its own; its stdout goes to our stderr, so that our stdout stays pure, and it has no stdin.
/// Ended with its whole group when destroyed.
class WorkerProcess {
 public:
  /// Starts `command`. Throws BackendError with the program's name where it cannot be started.
  explicit WorkerProcess(const WorkerCommand& command) : WorkerProcess(command, channel(), channel()) {}
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  ~WorkerProcess();

  /// What it writes.
  [[nodiscard]] int output() const { return from_worker_.get(); }
  /// What it reads.
  [[nodiscard]] int input() const { return to_worker_.get(); }

  /// For a worker whose pipe has ended: waits up to 2 s for the process to end by itself, then ends it. Says what
  /// became of it: "ended by signal 9 (Killed)", "exited with status 0".
  std::string reap();
  /// Closes its input, on which it ends by itself; where it does not, as terminate().
  void dismiss();
  /// SIGTERM, 2 s, SIGKILL, each to the whole group.
  void terminate();

 private:
  using Channel = std::pair<Descriptor, Descriptor>;  // our end and its
  static Channel channel();
  WorkerProcess(const WorkerCommand& command, Channel to_worker, Channel from_worker);
  void signal_group(int signal) const;

  Descriptor to_worker_;
  Descriptor from_worker_;
  ChildEnd end_;
  bool left_behind_ = false;
};

}  // namespace gpubench
