// A run in several processes: process 0 plans, judges, times and reports; the others run their ranks (harness/remote).
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

/// Prints a line for the user. Called from any thread.
using Tell = std::function<void(const std::string& text)>;

/// Returns what `join` returns. If MPI_Init takes longer than `note_s`, prints a note; after `limit_s` (0: never) ends
/// the process, since MPI_Init cannot be interrupted.
[[nodiscard]] std::unique_ptr<Processes> join_in_time(const LauncherPlace& place, double note_s, double limit_s,
                                                      const Tell& tell,
                                                      const std::function<std::unique_ptr<Processes>()>& join);

class ProcessRanks {
 public:
  /// `backend`: each process opens a share of it. `own`: build and settings, which process 0 compares. `limit_s`: how
  /// long one process may be silent, and all may make no progress; 0: no limit.
  ProcessRanks(std::unique_ptr<Processes> processes, const BackendEntry& backend, Hello own, double limit_s);
  ProcessRanks(const ProcessRanks&) = delete;
  ProcessRanks& operator=(const ProcessRanks&) = delete;
  ~ProcessRanks();

  [[nodiscard]] bool reports() const { return processes_->rank() == 0; }
  /// Of other processes: executes requests of process 0 until it ends.
  void serve(const Tell& tell);

  /// Of process 0: receives the hellos. Throws as RemoteRanks.
  void greet(const Tell& tell);
  /// Notes of greet().
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  [[nodiscard]] BackendEntry entry(const BackendEntry& backend);
  /// Ends all processes; the last call. If a process is lost, or with `at_once`, it ends all with this exit code and
  /// does not return.
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
  std::optional<Alarm> unasked_;  // runs until process 0 asks for the hello
  ChannelPair own_;               // to this process's rank in process 0
  std::thread serving_;
  std::unique_ptr<RemoteRanks> ranks_;
  std::vector<std::string> notes_;
};

/// Process 0 runs with the ranks of all processes and returns its exit code; the others serve it and return 0. Ends all
/// with the exit code, without returning, if a process is lost or does not fit. Throws UsageError for flags that such a
/// run does not support, CannotMeasure if the processes cannot be joined.
[[nodiscard]] int run_all_ranks(Options options, const Environment& environment, const LauncherPlace& place,
                                const std::function<int(const Options&, const Environment&)>& act);

}  // namespace gpubench
