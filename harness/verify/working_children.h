// Child processes of this program for selftest, determinism, soak, learn, and driver calls that may hang. If a child
// crashes, hangs or is killed, its findings are kept and its current activity is known.
//
// A child sends its findings line by line (ChildReporter). It sends its activity in the same way, or writes it to a
// page of memory shared with its parent. A write to the page needs no system call, so it is possible before each launch
// of a microsecond.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/file/descriptor.h"
#include "harness/run/run.h"

namespace gpubench {

/// For each call of a driver; the first after a reboot may load its module and wake every device.
inline constexpr double driver_deadline_s = 10.0;
/// For a backend to open its device: it loads a gigabyte of libraries and creates a context.
inline constexpr double opening_deadline_s = 60.0;

/// Call at the start of a child: ends it when its parent ends or has ended. `output_fd`: of --worker-output.
void end_with_parent(int output_fd);

/// Writes to the descriptor of --worker-output.
class ChildReporter {
 public:
  explicit ChildReporter(int fd) : fd_(fd) {}
  /// The next call: "cuInit". Throws CannotMeasure if the reader has ended, as does answer().
  void call(std::string_view name) const { send('C', name); }
  void answer(std::string_view line) const { send('A', line); }

 private:
  void send(char kind, std::string_view line) const;
  int fd_;
};

class WorkPage {
 public:
  /// Throws CannotMeasure if the system has no shared memory.
  WorkPage();
  /// The same page in the child; `fd`: of --worker-page.
  explicit WorkPage(int fd);
  WorkPage(const WorkPage&) = delete;
  WorkPage& operator=(const WorkPage&) = delete;
  ~WorkPage();

  /// Sets the activity, truncated to the page. Only one thread of one process may call it.
  void say(std::string_view what);
  /// Shows progress in the same activity.
  void beat();
  [[nodiscard]] std::string said() const;
  /// Changes with each say() and beat().
  [[nodiscard]] std::uint64_t beats() const;
  [[nodiscard]] int fd() const { return file_.get(); }

 private:
  struct Content;
  void map(int fd);

  Descriptor file_;  ///< none in the child
  Content* content_ = nullptr;
};

struct ChildTrouble {
  enum class Kind { none, silent, stays, ended };
  Kind kind = Kind::none;
  std::string doing{};    ///< its activity, as visible text; empty: unknown
  double silent_s = 0.0;  ///< of a child that was ended for its silence
  std::string end{};      ///< of a child that ended: "ended by signal 11 (Segmentation fault)", "exited with status 3"

  /// "said nothing for 60 s in X", "did not end in X", "ended by signal 11 (...) in X".
  [[nodiscard]] std::string text() const;
};

/// A child's standard output and error: to this process's standard error, or discarded.
enum class Printing { shown, dropped };

class WorkingChildren {
 public:
  struct Told {
    /// Called with each line of a child's findings. Children are numbered from 0 in the order of start(). If it or tick
    /// throws, the children are ended.
    std::function<void(std::size_t child, const std::string& line)> found;
    /// Called many times a second. May be empty.
    std::function<void()> tick;
    /// Called as soon as a child has ended, with the reason if it failed. May be empty.
    std::function<void(std::size_t child, const ChildTrouble& trouble)> ended;
  };

  /// Ends a child that sends nothing and does not beat for `silence_s`, before its first message for at least 60 s. 0:
  /// no limit.
  explicit WorkingChildren(double silence_s);
  ~WorkingChildren();
  WorkingChildren(const WorkingChildren&) = delete;
  WorkingChildren& operator=(const WorkingChildren&) = delete;

  /// Starts `argv` with --worker-output and, if `has_page`, --worker-page; may be called within listen(). Throws
  /// CannotMeasure.
  void start(std::vector<std::string> argv, bool has_page = true, Printing printing = Printing::shown);
  [[nodiscard]] std::string now(std::size_t child) const;
  /// Listens until all have ended; returns how each ended. Passes `stop` on once, and kills children that have not
  /// ended 10 s later.
  [[nodiscard]] std::vector<ChildTrouble> listen(const StopFlag& stop, const Told& told);

 private:
  struct Child;
  [[nodiscard]] bool hear(Child& child, std::size_t number, const Told& told) const;
  [[nodiscard]] bool is_silent(Child& child) const;
  void end(Child& child, std::size_t number, const Told& told) const;

  double silence_s_;
  std::vector<std::unique_ptr<Child>> children_;
};

struct ChildReply {
  std::string answer;   ///< the last one; empty if there was none
  std::string trouble;  ///< "does not answer (cuInit, 10 s)", "ended by signal 11 (...) in cuInit"; empty for a child
                        ///< that ended with status 0
};

/// Starts `argv` with --worker-output and listens until it ends, or is silent for `deadline_s` (0: no limit; longer
/// before its first message, for loaded machines). Throws CannotMeasure if it cannot be started or `stop` is raised.
[[nodiscard]] ChildReply ask(std::vector<std::string> argv, double deadline_s, const StopFlag& stop,
                             Printing printing = Printing::shown);

}  // namespace gpubench
