// A worker process as its supervisor sees it: started, spoken to, ended, and told what became of it.
#pragma once

#include <sys/types.h>

#include <string>

#include "harness/run/run.h"

namespace gpubench {

/// An open file descriptor, closed when destroyed.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { close(); }
  [[nodiscard]] int get() const { return fd_; }
  void close();

 private:
  int fd_ = -1;
};

/// Leads a process group of its own; its stdout goes to our stderr, so that our stdout stays pure, and it has no stdin.
/// Ended with its whole group when destroyed.
class WorkerProcess {
 public:
  /// Starts `command`. Throws BackendError with the program's name where it cannot be started.
  explicit WorkerProcess(const WorkerCommand& command);
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
  [[nodiscard]] bool ended_within(double seconds);
  void signal_group(int signal) const;

  FileDescriptor to_worker_;
  FileDescriptor from_worker_;
  pid_t pid_ = -1;
  bool ended_ = false;
  int status_ = 0;
};

/// "ended by signal 9 (Killed)" or "exited with status 1", from what waitpid() says.
[[nodiscard]] std::string describe_status(int status);

}  // namespace gpubench
