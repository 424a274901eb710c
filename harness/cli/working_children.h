// Children of this program that do a verb's work: each may crash or hang, or be killed, and what it was doing then is
// known, and what it had found until then is not lost.
//
// A child tells what it finds line by line (Teller). What it does now it writes into a page of memory that its parent
// shares and that outlives it: that takes no call into the kernel, so it can be said before each launch of a
// microsecond.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/children.h"
#include "harness/core/file/descriptor.h"

namespace gpubench {

class WorkPage {
 public:
  /// Throws CannotMeasure where the system has none.
  WorkPage();
  /// The same page, in the child, by the descriptor that it was given.
  explicit WorkPage(int fd);
  WorkPage(const WorkPage&) = delete;  // holds a mapping
  WorkPage& operator=(const WorkPage&) = delete;
  ~WorkPage();

  /// What is done from now on; a long text is cut off. One thread only.
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

class WorkingChildren {
 public:
  struct Told {
    /// Called with each line that the child numbered so, from 0 in the order of start(), has found. Where it throws,
    /// the children are ended.
    std::function<void(std::size_t child, const std::string& line)> found;
    /// Called many times a second. May be empty.
    std::function<void()> tick;
    /// Called as soon as a child has ended, with why where that was no good end. May be empty.
    std::function<void(std::size_t child, const std::string& trouble)> ended;
  };

  /// A child that neither tells anything nor goes on for so long is ended, one that has told nothing yet not before a
  /// minute; 0: none is.
  explicit WorkingChildren(double silence_s);
  ~WorkingChildren();
  WorkingChildren(const WorkingChildren&) = delete;
  WorkingChildren& operator=(const WorkingChildren&) = delete;

  /// Starts `argv` with --worker-output and --worker-page; also from within listen(). Throws CannotMeasure.
  void start(std::vector<std::string> argv);
  /// What the child does now, or did when it ended.
  [[nodiscard]] std::string now(std::size_t child) const;
  /// Listens until all have ended. `stop` is passed on once, and who has not ended 10 s later is killed. Of each: "",
  /// "ended by signal 11 (Segmentation fault) in a launch of X", "exited with status 3 in ...", "said nothing for 60 s
  /// in ...".
  [[nodiscard]] std::vector<std::string> listen(const StopFlag& stop, const Told& told);

 private:
  struct Child;
  [[nodiscard]] bool hear(Child& child, std::size_t number, const Told& told) const;
  void look_for_silence(Child& child) const;
  void end(Child& child, std::size_t number, const Told& told) const;

  double silence_s_;
  std::vector<std::unique_ptr<Child>> children_;
};

}  // namespace gpubench
