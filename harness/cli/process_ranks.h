// A run in several processes: process 0 plans, judges, times and reports as a run by itself does, and asks the others
// for their ranks (harness/remote).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/core/processes.h"
#include "harness/remote/rank_server.h"
#include "harness/remote/remote_process.h"
#include "harness/remote/remote_ranks.h"
#include "harness/remote/stall_watch.h"

namespace gpubench {

/// Prints a line for the user. Another thread may call it while this one waits.
using Tell = std::function<void(const std::string& text)>;

/// What `join` returns. While that lasts, reports after `note_s` that this process waits in MPI_Init, and ends the
/// process after `limit_s` (0: never): nothing else can be called there.
[[nodiscard]] std::unique_ptr<Processes> join_in_time(const LauncherPlace& place, double note_s, double limit_s,
                                                      const Tell& tell,
                                                      const std::function<std::unique_ptr<Processes>()>& join);

class ProcessRanks {
 public:
  /// `backend`: of which each process opens its share. `own`: its build and settings, which process 0 compares.
  /// `limit_s`: how long a process may be silent, and all may come no further; 0: for ever.
  ProcessRanks(std::unique_ptr<Processes> processes, const BackendEntry& backend, Hello own, double limit_s);
  ProcessRanks(const ProcessRanks&) = delete;
  ProcessRanks& operator=(const ProcessRanks&) = delete;
  ~ProcessRanks();

  /// Whether this is process 0.
  [[nodiscard]] bool reports() const { return processes_->rank() == 0; }
  /// Of any other process: does what process 0 asks, until that ends.
  void serve(const Tell& tell);

  /// Of process 0. Greets the others; throws BackendError, UsageError and DeviceLost as RemoteRanks.
  void greet(const Tell& tell);
  /// What greet() found worth a word.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// The backend's entry with the ranks of these processes.
  [[nodiscard]] BackendEntry entry(const BackendEntry& backend);
  /// Ends all processes; to be called last, once all that is to be said has been. Does not return where one of them is
  /// lost, or `at_once`: then all are ended with this exit code, whatever they do.
  void end(int code, bool at_once = false);

 private:
  [[nodiscard]] ServerSetup setup();
  [[nodiscard]] std::unique_ptr<Backend> described(std::unique_ptr<Backend> inner,
                                                   std::span<const RankPlace> places = {}) const;

  std::unique_ptr<Processes> processes_;
  std::string devices_;  // "CPUs"
  DeviceShare share_;
  Hello own_hello_;
  double limit_s_, note_s_;
  std::optional<Alarm> unasked_;  // until process 0 asks for the hello
  ChannelPair own_;               // to the rank of process 0 itself
  std::thread serving_;
  std::unique_ptr<RemoteRanks> ranks_;
  std::vector<std::string> notes_;
};

/// Process 0 acts as a run by itself does, with the ranks of all, and its exit code is returned; any other serves it,
/// and returns 0. Where a process is lost, or does not fit, all are ended with the exit code, and this does not return.
/// Throws UsageError for what such a run has not, CannotMeasure where the processes cannot be joined.
[[nodiscard]] int act_together(Options options, const Environment& environment, const LauncherPlace& place,
                               const std::function<int(const Options&, const Environment&)>& act);

}  // namespace gpubench
