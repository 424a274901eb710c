// What verbs that take minutes show while they work, and the one document that they leave.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "harness/cli/environment.h"
#include "harness/core/file/atomic_file.h"
#include "harness/report/json.h"

namespace gpubench {

/// How much a verb has done of what it was asked to do: an interruption leaves a part of it, which is no verdict.
struct Completion {
  bool complete = true;  ///< else it was interrupted, or failed on the way
  double done = 0.0;
  double requested = 0.0;
  std::string_view unit;  ///< "s", "cases", "runs"
  std::string trouble{};  ///< why the process that worked came to a bad end; empty where it did not
  /// "interrupted after 4 of 120 s", "ended after 1 of 4 models: its process ended by signal 11 ...".
  [[nodiscard]] std::string interrupted() const;
  /// The members "complete", "done", "requested", "unit" and, where there was any, "trouble".
  void add_to(Json& document) const;
};

/// Of items that are done one after the other: where `signal` stopped them, the last one that was begun is not done.
[[nodiscard]] Completion completion_of(std::size_t begun, std::size_t requested, std::string_view unit, int signal);

/// What is done now, on standard error: on a terminal a line that is overwritten, elsewhere a line now and then. The
/// destructor erases it.
class StatusLine {
 public:
  explicit StatusLine(const Environment& environment) : environment_(environment) {}
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;
  ~StatusLine() { erase(); }
  /// May hold any text, of files as well.
  void show(const std::string& now);
  void erase();

 private:
  const Environment& environment_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

/// Throws "FLAG: why", `flag` may be empty: UsageError where the path or a permission is wrong, CannotMeasure where the
/// disk is full or fails.
[[noreturn]] void fail_to_write(std::string_view flag, const WriteError& error);

/// Writes a file, and lists it on standard error with its size. Throws WriteError.
void write_listed(const std::string& path, std::string_view text, const WriteRules& rules,
                  const Environment& environment);

/// A document that is written at the end, to a file; "-": to standard output, and then nothing else is.
class ResultFile {
 public:
  /// `path` may be empty: none is wanted. Throws as fail_to_write() where the file could not be written now.
  ResultFile(std::string flag, std::string path, const WriteRules& rules, const Environment& environment);
  [[nodiscard]] bool is_stdout() const { return path_ == "-"; }
  /// Where text for people goes.
  [[nodiscard]] std::ostream& prose() const { return is_stdout() ? environment_.err : environment_.out; }
  /// Throws CannotMeasure where it cannot be written now; so does the next.
  void write(const Json& document) const;
  /// Another text than JSON; nothing where it is empty.
  void write(const std::string& text) const;

 private:
  std::string path_;
  WriteRules rules_;
  const Environment& environment_;
};

}  // namespace gpubench
