// Child processes of this program, each of which may crash, hang or be killed: what it was doing then is known, and
// what it had found until then is kept. They do the work of selftest, determinism, soak and learn, and ask a driver
// what may never be answered.
//
// A child sends what it finds line by line (ChildReporter). What it does now it sends the same way, or writes into a
// page of memory that its parent shares and that outlives it: that takes no call into the kernel, so it can be done
// before each launch of a microsecond.
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

/// A driver gets this long for each call; the first after a reboot may load its module and wake every device.
inline constexpr double driver_deadline_s = 10.0;
/// A backend opens its device within this: it loads a gigabyte of libraries, and makes a context.
inline constexpr double opening_deadline_s = 60.0;

/// For a child at its start: ends it as soon as its parent ends, even if that has happened already. `output_fd`: the
/// descriptor that it was given.
void end_with_parent(int output_fd);

/// Written to the descriptor that a child is given (--worker-output).
class ChildReporter {
 public:
  explicit ChildReporter(int fd) : fd_(fd) {}
  /// "cuInit": what will be called next. Throws CannotMeasure where the reader is gone; so does the next.
  void call(std::string_view name) const { send('C', name); }
  /// One line of what it has found.
  void answer(std::string_view line) const { send('A', line); }

 private:
  void send(char kind, std::string_view line) const;
  int fd_;
};

class WorkPage {
 public:
  /// Throws CannotMeasure where the system has none.
  WorkPage();
  /// The same page, in the child, by the descriptor that it was given (--worker-page).
  explicit WorkPage(int fd);
  WorkPage(const WorkPage&) = delete;  // holds a mapping
  WorkPage& operator=(const WorkPage&) = delete;
  ~WorkPage();

  /// What is done from now on; a long text is cut off. One thread of one process only.
  void say(std::string_view what);
  /// The same still, but it goes on.
  void beat();
  [[nodiscard]] std::string said() const;
  /// Changes with each of the above.
  [[nodiscard]] std::uint64_t beats() const;
  [[nodiscard]] int fd() const { return file_.get(); }

 private:
  struct Content;
  void map(int fd);

  Descriptor file_;  ///< none in the child
  Content* content_ = nullptr;
};

/// Why a child came to a bad end.
struct ChildTrouble {
  enum class Kind { none, silent, stays, ended };
  Kind kind = Kind::none;
  std::string doing{};    ///< what it did then, as visible text; empty: not known
  double silent_s = 0.0;  ///< of one that was ended for its silence
  std::string end{};      ///< of one that ended: "ended by signal 11 (Segmentation fault)", "exited with status 3"

  /// Of one that works: "said nothing for 60 s in X", "did not end in X", "ended by signal 11 (...) in X".
  [[nodiscard]] std::string text() const;
};

/// What a child prints: on our standard error, or nowhere.
enum class Printing { shown, dropped };

class WorkingChildren {
 public:
  struct Told {
    /// Called with each line that the child numbered so, from 0 in the order of start(), has found. Where it or tick
    /// throws, the children are ended.
    std::function<void(std::size_t child, const std::string& line)> found;
    /// Called many times a second. May be empty.
    std::function<void()> tick;
    /// Called as soon as a child has ended, with why where that was no good end. May be empty.
    std::function<void(std::size_t child, const ChildTrouble& trouble)> ended;
  };

  /// A child that neither tells anything nor goes on for so long is ended, one that has told nothing yet not before a
  /// minute; 0: none is.
  explicit WorkingChildren(double silence_s);
  ~WorkingChildren();
  WorkingChildren(const WorkingChildren&) = delete;
  WorkingChildren& operator=(const WorkingChildren&) = delete;

  /// Starts `argv` with --worker-output and, where it `has_page`, --worker-page; also from within listen(). Throws
  /// CannotMeasure.
  void start(std::vector<std::string> argv, bool has_page = true, Printing printing = Printing::shown);
  /// What the child does now, or did when it ended.
  [[nodiscard]] std::string now(std::size_t child) const;
  /// Listens until all have ended, and returns how each did. `stop` is passed on once, and who has not ended 10 s later
  /// is killed.
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
  std::string answer;   ///< the last one; empty where there was none
  std::string trouble;  ///< why nothing more came: "does not answer (cuInit, 10 s)", "ended by signal 11 (...) in
                        ///< cuInit"; empty for a child that ended with status 0
};

/// Starts `argv` with --worker-output and listens until it ends, or says nothing for `deadline_s` (0: for ever; until
/// it says its first word a loaded machine may take longer). Throws CannotMeasure where it cannot be started, or `stop`
/// is raised.
[[nodiscard]] ChildReply ask(std::vector<std::string> argv, double deadline_s, const StopFlag& stop,
                             Printing printing = Printing::shown);

}  // namespace gpubench
