// Other processes of this program. A question to something that may never answer (a driver), asked of a child process:
// the child says each call before it makes it, so that of one that hangs the name is known, and it is ended at its
// deadline or with its parent.
#pragma once

#include <signal.h>

#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "harness/run/run.h"

namespace gpubench {

/// A driver gets this long for each call; the first after a reboot may load its module and wake every device.
inline constexpr double driver_deadline_s = 10.0;
/// A backend opens its device within this: it loads a gigabyte of libraries, and makes a context.
inline constexpr double opening_deadline_s = 60.0;

/// Written to the descriptor that a child is given (--worker-output).
class Teller {
 public:
  explicit Teller(int fd) : fd_(fd) {}
  /// "cuInit": what will be called next. Throws CannotMeasure where the reader is gone; so does the next.
  void call(std::string_view name) const { send('C', name); }
  /// One line; the last one counts.
  void answer(std::string_view line) const { send('A', line); }

 private:
  void send(char kind, std::string_view line) const;
  int fd_;
};

struct Heard {
  std::string answer;   ///< the last one; empty where there was none
  std::string trouble;  ///< why nothing more came: "does not answer (cuInit, 10 s)", "ended by signal 11 (...) in
                        ///< cuInit"; empty for a child that ended with status 0
};

/// What a child prints: on our standard error, or nowhere.
enum class Printing { shown, dropped };

/// Starts `argv` with --worker-output and listens until it ends, or says nothing for `deadline_s` (0: for ever; until
/// it says its first word a loaded machine may take longer). Throws CannotMeasure where it cannot be started, or `stop`
/// is raised.
[[nodiscard]] Heard ask(std::vector<std::string> argv, double deadline_s, const StopFlag& stop,
                        Printing printing = Printing::shown);

/// For a child at its start: ends it as soon as its parent ends, even if that has happened already. `output_fd`: the
/// descriptor that it was given.
void end_with_parent(int output_fd);

/// Whether this signal ends at once what an earlier one has asked to stop: not the first, nor the same signal again
/// within a second where both come from one process (timeout(1) signals a process and then its group) or one comes from
/// the parent (a service manager signals every process, and calibrate passes its own signal on), nor any other within a
/// quarter of a second: a script that ends everything sends several. Remembers the first.
/// For signal handlers, or where signals are blocked; one thread at a time.
[[nodiscard]] bool is_another_wish(int signal, const siginfo_t& info);

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

}  // namespace gpubench
