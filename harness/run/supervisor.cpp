// run_isolated(): hands cases to a worker, and replaces a worker that died, hung or sent garbage.
//
// The case that the worker announced last gets the fault as its record; the other unfinished cases of its group go to
// the next worker. Every loop ends: each iteration finishes a case, or is the only retry of a group whose worker died
// before announcing a case.
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "harness/core/error.h"
#include "harness/measure/protocol.h"
#include "harness/run/case_record.h"
#include "harness/run/child_process.h"
#include "harness/run/engine.h"
#include "harness/run/process_state.h"
#include "harness/run/timing.h"
#include "harness/run/wire.h"

namespace gpubench {
namespace {

constexpr int tick_ms = 50;
/// Consecutive workers that may die without announcing a case before the run gives up.
constexpr int max_failed_starts = 4;
/// Cases that may fail with the same error before any case has been prepared.
constexpr int max_unprepared = 3;
constexpr std::string_view preparing = "prepare";

/// Margin for other machines than those of the estimate, and for other load.
constexpr double times_estimate = 3.0;

/// A decoded message: a case entered a phase, ended a round, or is finished.
struct WorkerMessage {
  FrameKind kind = FrameKind::phase;
  std::size_t index = 0;
  std::string phase;
  std::optional<CaseRecord> record;
};

class Supervisor {
 public:
  Supervisor(std::span<const PlannedCase> cases, const RunOptions& options, const WorkerCommand& command,
             const RecordCodec& codec, RunObserver& observer, const StopFlag& stop)
      : cases_(cases),
        options_(options),
        command_(command),
        codec_(codec),
        observer_(observer),
        stop_(stop),
        finished_(cases.size()) {
    for (std::size_t i = 0; i < cases.size(); ++i) finished_[i] = options.finished.contains(cases[i].key());
    any_prepared_ = !options.finished.empty() || !options.in_flight.empty();
  }

  void run() {
    std::vector<std::size_t> left;
    std::vector<const PlannedCase*> planned;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      if (finished_[i]) continue;
      left.push_back(i);
      planned.push_back(&cases_[i]);
    }
    auto next = left.begin();
    for (const std::size_t size : group_sizes(planned)) {
      const auto first = std::exchange(next, next + static_cast<std::ptrdiff_t>(size));
      run_group({first, next});
    }
    if (worker_ != nullptr && stop_ != 0) worker_->terminate();
  }

 private:
  void run_group(std::vector<std::size_t> group) {
    bool retried = false;
    while (stop_ == 0) {
      group.erase(std::remove_if(group.begin(), group.end(), [&](std::size_t i) { return finished_[i]; }), group.end());
      if (group.empty()) return;
      if (gives_up()) {
        for (const std::size_t index : group)
          fail(index, fmt::format("given up: {} cases in a row could not be prepared, for the same reason: {}",
                                  max_unprepared, unprepared_fault_));
        return;
      }
      running_.reset();
      announced_ = false;
      leaving_ = false;
      const std::optional<std::string> fault = hand_out(group);
      if (stop_ != 0) return;
      if (gives_up()) {
        worker_.reset();
        continue;
      }
      if (!fault && leaving_) {  // the reason is in the case's record
        observer_.note("the worker lost its device, or can't be trusted; a new worker runs the other cases");
        worker_->reap();
        worker_.reset();
        frames_ = FrameReader();
        if (!progressed(group)) fail(group.front(), "the device was lost before any case began");
        continue;
      }
      if (!fault) {
        for (const std::size_t index : group) {
          if (!finished_[index]) fail(index, "the worker ended its group without a record of this case");
        }
        continue;
      }
      worker_.reset();
      frames_ = FrameReader();
      failed_starts_ = announced_ ? 0 : failed_starts_ + 1;
      if (failed_starts_ >= max_failed_starts || hopeless_) {
        for (const std::size_t index : group) fail(index, fmt::format("no worker could do any work: {}", *fault));
        continue;
      }
      if (running_) {
        if (phase_ == preparing) note_unprepared(*running_, *fault);
        fail(*running_, fmt::format("{} while '{}' of this case ran", *fault, phase_));
        observer_.note(
            fmt::format("{} in case '{}'; a new worker runs the other cases", *fault, cases_[*running_].key()));
      } else if (!std::exchange(retried, true)) {
        observer_.note(fmt::format("{} between two cases; trying again", *fault));
      } else {
        const auto suspect = std::find_if(group.begin(), group.end(), [&](std::size_t i) { return !finished_[i]; });
        if (suspect != group.end())
          fail(*suspect, fmt::format("{}, twice, before the worker announced this case", *fault));
        retried = false;
      }
    }
  }

  /// Sends the group and listens until it is done. Returns the fault, if any.
  std::optional<std::string> hand_out(const std::vector<std::size_t>& group) {
    try {
      if (worker_ == nullptr) {
        if (const std::string change = processors_.take_change(); !change.empty()) pass_on(processors_note(change));
        worker_ = std::make_unique<WorkerProcess>(command_);
        clock_ = WorkerClock();
        heard_ = false;
      }
      GroupList list;
      for (const std::size_t index : group) list.emplace_back(index, cases_[index].key());
      current_ = &group;
      write_frame(worker_->input(), {FrameKind::group, encode_group(list)});
    } catch (const WireError&) {
      return "worker " + worker_->reap();
    } catch (const BackendError& e) {
      hopeless_ = true;
      return e.what();
    }
    return listen();
  }

  std::optional<std::string> listen() {
    restart_deadline();
    while (true) {
      if (stop_ != 0) {
        worker_->terminate();
        return "stopped";
      }
      pollfd readable{worker_->output(), POLLIN, 0};
      if (::poll(&readable, 1, 0) == 0) silent_at_s_ = monotonic_s();
      const int ready = ::poll(&readable, 1, tick_ms);
      observer_.tick();
      limit_output();
      if (ready <= 0) {
        if (options_.deadline_floor_s <= 0.0 || !silent_too_long()) continue;
        worker_->terminate();
        return fmt::format("no answer for {:.3g} s{}", deadline_s_, slow_reason());
      }
      bool open = true;
      bool done = false;
      std::optional<std::string> nonsense;
      tampered_.reset();
      std::vector<WorkerMessage> news;
      try {
        open = read_some(worker_->output(), frames_);
        while (const std::optional<Frame> frame = done || tampered_ || gives_up() ? std::nullopt : frames_.next()) {
          leaving_ = frame->kind == FrameKind::leaving;
          done = leaving_ || frame->kind == FrameKind::done;
          heard_ = true;
          if (frame->kind == FrameKind::note) {
            pass_on(frame->body);
          } else if (frame->kind == FrameKind::clock) {
            tampered_ = clock_.fault(seconds_of(frame->body), silent_at_s_, monotonic_s());
          } else if (!done && frame->kind != FrameKind::beat) {
            news.push_back(take(*frame));
          }
        }
      } catch (const std::exception& e) {  // of wire or codec: the worker is no longer trusted
        nonsense = e.what();
      }
      for (const WorkerMessage& one : news) tell(one);
      note_if_slow();
      if (gives_up()) {
        worker_->terminate();
        return unprepared_fault_;
      }
      if (nonsense) {
        worker_->terminate();
        return fmt::format("worker sent {}", *nonsense);
      }
      if (tampered_) {
        blame_contender();
        worker_->terminate();
        return tampered_;
      }
      if (done) return std::nullopt;
      if (!open) return "worker " + worker_->reap();
      restart_deadline();
    }
  }

  [[nodiscard]] bool progressed(const std::vector<std::size_t>& group) const {
    return std::any_of(group.begin(), group.end(), [&](std::size_t i) { return finished_[i]; });
  }

  /// Output of code under test must not fill the disk.
  void limit_output() const {
    struct stat status {};
    if (command_.output_fd >= 0 && ::fstat(command_.output_fd, &status) == 0 &&
        status.st_size > WorkerCommand::longest_output_bytes)
      (void)!::ftruncate(command_.output_fd, 0);
  }

  /// Passes each note on once, since a new worker repeats the notes of the previous one.
  void pass_on(const std::string& note) {
    if (told_.insert(note).second) observer_.note(note);
  }

  /// Throws for an invalid message.
  WorkerMessage take(const Frame& frame) {
    if (frame.kind == FrameKind::refusal) throw WireError("a refusal: " + frame.body);
    if (frame.kind != FrameKind::phase && frame.kind != FrameKind::round && frame.kind != FrameKind::record)
      throw WireError("a message that is not for a supervisor");
    const auto [index, rest] = split_index(frame.body, frame.kind == FrameKind::phase ? ' ' : '\n');
    if (std::find(current_->begin(), current_->end(), index) == current_->end() || finished_[index]) {
      throw WireError(fmt::format("a message about case {}, which is not in its group", index));
    }
    if (frame.kind == FrameKind::phase) {
      if (phase_ != rest || running_ != index) since_phase_ = Stopwatch();
      running_ = index;
      phase_ = rest;
      announced_ = true;
      any_prepared_ = any_prepared_ || phase_ != preparing;
      return {frame.kind, index, phase_, std::nullopt};
    }
    CaseRecord record = codec_.decode(rest);
    if (record.key() != cases_[index].key())
      throw WireError(fmt::format("a record of case '{}' instead of '{}'", record.key(), cases_[index].key()));
    if (frame.kind == FrameKind::record) {
      running_.reset();
      finished_[index] = true;
      if (phase_ == preparing && record.verdict == Verdict::error) note_unprepared(index, record.reason);
      look_at_code(cases_[index], record);
    }
    return {frame.kind, index, "", std::move(record)};
  }

  void look_at_code(const PlannedCase& planned, CaseRecord& record) {
    if (planned.c.contender.empty()) return;
    if (const std::string why = hidden_code_reason(worker_->pid()); !why.empty())
      return pass_on(fmt::format("the code of workers cannot be compared with its files: {}", why));
    const std::string changed = changed_code(worker_->pid());
    if (changed.empty()) return;
    blame(record, Verdict::error, changed);
    tampered_ = changed;
  }

  /// Contenders and the reference take turns in one process, so damage by one may show in another's turn.
  void blame_contender() {
    if (!running_ || !cases_[*running_].c.contender.empty()) return;
    const auto own = std::find_if(current_->begin(), current_->end(),
                                  [&](std::size_t i) { return !finished_[i] && !cases_[i].c.contender.empty(); });
    if (own != current_->end()) running_ = *own;
  }

  static double seconds_of(const std::string& text) {
    char* end = nullptr;
    const double seconds = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0') throw WireError("a time that is not a number");
    return seconds;
  }

  void tell(const WorkerMessage& news) {
    if (news.kind == FrameKind::record) {
      observer_.finished(*news.record);
    } else if (news.kind == FrameKind::round) {
      observer_.round(*news.record);
    } else {
      observer_.phase(cases_[news.index].key(), news.phase);
    }
  }

  void fail(std::size_t index, std::string reason) {
    if (finished_[index]) return;
    CaseRecord record = open_record(cases_[index], options_);
    blame(record, Verdict::error, std::move(reason));
    finished_[index] = true;
    observer_.finished(record);
  }

  /// A fault that prevents the preparation of each of the first cases affects all: a library that does not load, a
  /// device without memory. Implementations under test do not count: they may fail for one kind of op.
  void note_unprepared(std::size_t index, const std::string& fault) {
    if (any_prepared_ || !cases_[index].c.contender.empty()) return;
    unprepared_ = fault == unprepared_fault_ ? unprepared_ + 1 : 1;
    unprepared_fault_ = fault;
  }

  [[nodiscard]] bool gives_up() const { return unprepared_ >= max_unprepared; }

  [[nodiscard]] double expected_s(std::size_t index) const {
    const auto found = options_.expected_s.find(cases_[index].key());
    return found == options_.expected_s.end() ? 0.0 : found->second;
  }

  // Between two cases the next is unknown, so the longest of the group counts.
  [[nodiscard]] double longest_expected_s() const {
    if (running_) return expected_s(*running_);
    double longest = 0.0;
    if (current_ != nullptr) {
      for (const std::size_t index : *current_) longest = std::max(longest, expected_s(index));
    }
    return longest;
  }

  // The cap applies on a busy machine too.
  bool silent_too_long() {
    return silence_.exceeds(deadline_s_, worker_->pid()) ||
           silence_.seconds() > std::max(options_.deadline_cap_s, deadline_s_);
  }

  void restart_deadline() {
    silence_ = Silence();
    const bool plans = running_ && phase_ == preparing;
    const double floor = plans ? std::max(options_.deadline_floor_s, options_.plan_limit_s) : options_.deadline_floor_s;
    const double cap = std::max(options_.deadline_cap_s, floor);
    deadline_s_ = std::clamp(times_estimate * longest_expected_s(), floor, cap);
    if (!heard_) deadline_s_ = std::max(deadline_s_, options_.opening_deadline_s);
  }

  [[nodiscard]] std::string slow_reason() const {
    if (!heard_) return " from a new worker";
    if (deadline_s_ <= options_.deadline_floor_s) return "";
    return deadline_s_ < options_.deadline_cap_s
               ? fmt::format(" ({:g} times the estimate of {:.3g} s)", times_estimate, longest_expected_s())
               : " (the longest silence allowed)";
  }

  // A responsive worker may finish; one note per case.
  void note_if_slow() {
    if (!running_ || options_.deadline_floor_s <= 0.0 || since_phase_.seconds() <= deadline_s_) return;
    if (!slow_.insert(*running_).second) return;
    observer_.note(
        fmt::format("case '{}' has been in phase '{}' for {:.3g} s, longer than expected; its worker still answers",
                    cases_[*running_].key(), phase_, since_phase_.seconds()));
  }

  std::span<const PlannedCase> cases_;
  const RunOptions& options_;
  const WorkerCommand& command_;
  const RecordCodec& codec_;
  RunObserver& observer_;
  const StopFlag& stop_;
  std::vector<bool> finished_;
  std::unique_ptr<WorkerProcess> worker_;
  FrameReader frames_;
  std::set<std::string> told_;
  UsableProcessors processors_;
  bool leaving_ = false;  // the worker has announced its end
  const std::vector<std::size_t>* current_ = nullptr;
  std::optional<std::size_t> running_;
  std::string phase_;
  bool heard_ = false;  ///< the current worker has sent a message
  Stopwatch since_phase_;
  std::set<std::size_t> slow_;  ///< cases that were noted as slow
  bool announced_ = false;      ///< the current worker has announced a case of this group
  bool hopeless_ = false;       ///< no worker can be started
  int failed_starts_ = 0;
  bool any_prepared_ = false;            ///< a case got beyond its first phase
  int unprepared_ = 0;                   ///< consecutive cases that failed with the same error before that
  std::string unprepared_fault_;         ///< their error
  WorkerClock clock_;                    ///< of the current worker
  double silent_at_s_ = 0.0;             ///< WorkerClock::fault()'s `empty_s`
  std::optional<std::string> tampered_;  ///< why the worker is no longer trusted
  Silence silence_;
  double deadline_s_ = 0.0;
};

}  // namespace

void run_isolated(std::span<const PlannedCase> cases, const RunOptions& options, const WorkerCommand& worker,
                  const RecordCodec& codec, RunObserver& observer, const StopFlag& stop) {
  Supervisor(cases, options, worker, codec, observer, stop).run();
}

}  // namespace gpubench
