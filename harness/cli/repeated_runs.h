// Child runs of calibrate, tune-batch and determinism: their report files, signals, and processors.
#pragma once

#include <sched.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/run/run.h"

namespace gpubench {

/// A folder for reports. The destructor removes it unless it was requested.
class ReportFolder {
 public:
  /// `keep`: of --keep; empty: a temporary folder. Throws UsageError for --keep, else WriteError.
  ReportFolder(const std::string& keep, std::string_view verb);
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;
  ~ReportFolder();
  [[nodiscard]] const std::string& path() const { return path_; }
  /// `run`: from 1.
  [[nodiscard]] std::string report(int run) const;

 private:
  std::string path_;
  bool temporary_;
};

/// A stopped run (SIGSTOP) that does not continue within this time is killed.
inline constexpr double stopped_patience_s = 60.0;

/// Runs `argv` to its end. Drops its standard output, shares standard error, and passes signals on. Returns the exit
/// code; could_not_measure, with a line in `err`, if another signal ended the run or stopped it for `stopped_s`. Throws
/// BackendError if it cannot start.
[[nodiscard]] int run_child_process(const std::vector<std::string>& argv, const StopFlag& stop, std::ostream& err,
                                    double stopped_s = stopped_patience_s);

/// 0: unknown.
[[nodiscard]] int usable_processors();

/// Limits this thread and its child processes to `count` processors after the first `skipped`. Libraries choose their
/// number of threads by that at start.
class OnProcessors {
 public:
  /// Throws CannotMeasure if the system refuses.
  explicit OnProcessors(int count, int skipped = 0);
  OnProcessors(const OnProcessors&) = delete;  // the destructor restores the previous set
  OnProcessors& operator=(const OnProcessors&) = delete;
  ~OnProcessors() { (void)::sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_{};
};

}  // namespace gpubench
