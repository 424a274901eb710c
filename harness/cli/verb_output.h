// Status line and result document of verbs that take minutes.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "harness/cli/environment.h"
#include "harness/core/file/atomic_file.h"
#include "harness/report/json.h"

namespace gpubench {

/// The completed part of a verb's work. A partial result is not a verdict.
struct Completion {
  bool complete = true;  ///< false: interrupted or failed
  double done = 0.0;
  double requested = 0.0;
  std::string_view unit;  ///< "s", "cases", "runs"
  std::string trouble{};  ///< why the process failed; empty: it did not
  /// "interrupted after 4 of 120 s", "ended after 1 of 4 models: its process ended by signal 11 ...".
  [[nodiscard]] std::string interrupted() const;
  /// Adds "complete", "done", "requested", "unit" and, after a failure, "trouble".
  void add_to(Json& document) const;
};

/// For items done one after the other: if `signal` is set, the last one begun is incomplete.
[[nodiscard]] Completion completion_of(std::size_t begun, std::size_t requested, std::string_view unit, int signal);

/// The current step, on standard error: on a terminal one line that is overwritten, elsewhere occasional lines. The
/// destructor erases it.
class StatusLine {
 public:
  explicit StatusLine(const Environment& environment) : environment_(environment) {}
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine() { erase(); }
  /// Accepts untrusted text.
  void show(const std::string& now);
  void erase();

 private:
  const Environment& environment_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

/// Throws "FLAG: why" (`flag` may be empty): UsageError for a wrong path or permissions, CannotMeasure if the disk is
/// full or fails.
[[noreturn]] void fail_to_write(std::string_view flag, const WriteError& error);

void write_listed(const std::string& path, std::string_view text, const WriteRules& rules,
                  const Environment& environment);

/// A document written at the end to a file, or for "-" to standard output, which then holds nothing else.
class ResultFile {
 public:
  /// `path`: may be empty for none. Throws as fail_to_write() if the file cannot be written.
  ResultFile(std::string flag, std::string path, const WriteRules& rules, const Environment& environment);
  [[nodiscard]] bool is_stdout() const { return path_ == "-"; }
  [[nodiscard]] std::ostream& prose() const { return is_stdout() ? environment_.err : environment_.out; }
  /// Throws CannotMeasure if writing fails; so does the overload.
  void write(const Json& document) const;
  /// Writes nothing if empty.
  void write(const std::string& text) const;

 private:
  std::string path_;
  WriteRules rules_;
  const Environment& environment_;
};

}  // namespace gpubench
