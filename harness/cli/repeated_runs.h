// Whole runs of this program, one after the other: of calibrate, tune-batch and determinism. Where their reports go,
// and what becomes of them when this process is stopped. Which processors children may use: their libraries choose
// their threads by that when they start.
#pragma once

#include <sched.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/run/run.h"

namespace gpubench {

/// A folder for the reports of runs, gone with its scope unless it was asked for.
class ReportFolder {
 public:
  /// `keep`: of --keep; empty: a temporary one. `verb`: whose. Throws UsageError for --keep, else WriteError.
  ReportFolder(const std::string& keep, std::string_view verb);
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;
  ~ReportFolder();
  [[nodiscard]] const std::string& path() const { return path_; }
  /// A file there, `run` counted from 1.
  [[nodiscard]] std::string report(int run) const;

 private:
  std::string path_;
  bool temporary_;
};

/// A run that was stopped (SIGSTOP) goes on within this, or is killed.
inline constexpr double stopped_patience_s = 60.0;

/// Another run of this program, which calibrate repeats. Runs `argv` to its end; its standard output is dropped, its
/// standard error is ours. A signal that stops this process is passed on. Returns the exit code; could_not_measure,
/// with a line in `err`, where another signal ended the run, or stopped it for `stopped_s`. Throws
/// BackendError where it cannot start.
[[nodiscard]] int run_child_process(const std::vector<std::string>& argv, const StopFlag& stop, std::ostream& err,
                                    double stopped_s = stopped_patience_s);

/// How many this process may use; 0 where the kernel does not tell.
[[nodiscard]] int usable_processors();

/// While it lives, this thread and the processes that it starts may use only `count` of its processors, those after the
/// first `skipped`.
class OnProcessors {
 public:
  /// Throws CannotMeasure where the system does not let it.
  explicit OnProcessors(int count, int skipped = 0);
  OnProcessors(const OnProcessors&) = delete;  // restores what was before
  OnProcessors& operator=(const OnProcessors&) = delete;
  ~OnProcessors() { (void)::sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_{};
};

}  // namespace gpubench
