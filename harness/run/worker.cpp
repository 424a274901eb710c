// serve(): the worker's side of isolation. It holds the device; when it dies, only the case that was running is lost.
#include <fmt/format.h>
#include <sys/prctl.h>

#include <csignal>
#include <cstdio>
#include <map>

#include "harness/core/error.h"
#include "harness/run/engine.h"
#include "harness/run/timing.h"
#include "harness/run/wire.h"

namespace gpubench {
namespace {

/// Exit status of a worker that cannot understand, or reach, its supervisor.
constexpr int lost_supervisor = 3;

/// Tells the supervisor what the engine tells its observer.
class WireObserver : public RunObserver {
 public:
  WireObserver(int fd, const RecordCodec& codec) : fd_(fd), codec_(codec) {}

  void expect(const GroupList& group) {
    index_.clear();
    for (const auto& [index, id] : group) index_[id] = index;
  }
  void phase(std::string_view case_id, std::string_view phase) override {
    write_frame(fd_, {FrameKind::phase, fmt::format("{} {}", index_.at(std::string(case_id)), phase)});
  }
  void finished(const CaseRecord& record) override {
    write_frame(fd_, {FrameKind::record, fmt::format("{}\n{}", index_.at(record.id), codec_.encode(record))});
  }
  void round(const CaseRecord& record) override {
    write_frame(fd_, {FrameKind::round, fmt::format("{}\n{}", index_.at(record.id), codec_.encode(record))});
  }
  void note(std::string_view text) override { write_frame(fd_, {FrameKind::note, std::string(text)}); }
  void tick() override {
    if (since_beat_.seconds() < beat_s) return;
    since_beat_ = Stopwatch();
    write_frame(fd_, {FrameKind::beat, ""});
  }

 private:
  static constexpr double beat_s = 0.5;

  Stopwatch since_beat_;
  int fd_;
  const RecordCodec& codec_;
  std::map<std::string, std::size_t> index_;
};

/// The cases of a group with their programs; throws WireError where this process planned others than the supervisor.
std::vector<PlannedCase> cases_of(const GroupList& group, std::span<const PlannedCase> cases) {
  std::vector<PlannedCase> wanted;
  for (const auto& [index, id] : group) {
    if (index >= cases.size() || cases[index].id() != id) {
      throw WireError(fmt::format("case {} is '{}' here, not '{}': the worker declares other cases than its supervisor",
                                  index, index < cases.size() ? cases[index].id() : "missing", id));
    }
    wanted.push_back(with_program(cases[index]));
  }
  return wanted;
}

}  // namespace

int serve(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options, const RecordCodec& codec,
          int input_fd, int output_fd) {
  // The supervisor decides when to stop; it must not leave a worker behind when it dies itself.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    WireObserver observer(output_fd, codec);
    RunOptions told = options;
    told.alive = [&observer] { observer.tick(); };
    Engine engine(backend, told);
    FrameReader reader;
    const StopFlag never{0};
    while (read_some(input_fd, reader)) {
      while (const std::optional<Frame> frame = reader.next()) {
        if (frame->kind != FrameKind::group) throw WireError("a message that is not for a worker");
        const GroupList group = decode_group(frame->body);
        observer.expect(group);
        try {
          engine.run(cases_of(group, cases), observer, never);
        } catch (const DeviceLost&) {
          write_frame(output_fd,
                      {FrameKind::leaving, ""});  // the rest of the group is for a process with a fresh device
          return 0;
        }
        write_frame(output_fd, {FrameKind::done, ""});
      }
    }
    return 0;
  } catch (const std::exception& e) {
    try {
      write_frame(output_fd, {FrameKind::refusal, e.what()});
    } catch (const WireError&) {
      std::fputs(fmt::format("worker: {}\n", e.what()).c_str(), stderr);  // nobody listens at the pipe any more
    }
    return lost_supervisor;
  }
}

}  // namespace gpubench
