// run_in_process(): without isolation, for debuggers, profilers and tests. serve(): the worker, which holds the device;
// if it crashes, only the running case is lost.
#include "harness/run/run.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "harness/core/error.h"
#include "harness/run/case_record.h"
#include "harness/run/engine.h"
#include "harness/run/process_state.h"
#include "harness/run/timing.h"
#include "harness/run/wire.h"

namespace gpubench {
namespace {

/// Thrown once `stop` is raised; not a std::exception, which would become the case's record.
struct Interrupted {};

/// Exit status of a worker after a failure of the connection to its supervisor.
constexpr int lost_supervisor = 3;

class WireObserver : public RunObserver {
 public:
  WireObserver(int fd, const RecordCodec& codec) : fd_(fd), codec_(codec) {}

  void expect(const GroupList& group) {
    index_.clear();
    for (const auto& [index, key] : group) index_[key] = index;
  }
  void phase(std::string_view key, std::string_view phase) override {
    send_clock();
    write_frame(fd_, {FrameKind::phase, fmt::format("{} {}", index_.at(std::string(key)), phase)});
  }
  void finished(const CaseRecord& record) override {
    write_frame(fd_, {FrameKind::record, fmt::format("{}\n{}", index_.at(record.key()), codec_.encode(record))});
  }
  void round(const CaseRecord& record) override {
    send_clock();
    write_frame(fd_, {FrameKind::round, fmt::format("{}\n{}", index_.at(record.key()), codec_.encode(record))});
  }
  void note(std::string_view text) override { write_frame(fd_, {FrameKind::note, std::string(text)}); }
  void tick() override {
    if (since_beat_.seconds() < beat_s) return;
    since_beat_ = Stopwatch();
    write_frame(fd_, {FrameKind::beat, ""});
  }

 private:
  static constexpr double beat_s = 0.5;
  void send_clock() { write_frame(fd_, {FrameKind::clock, fmt::format("{:.9f}", monotonic_s())}); }

  Stopwatch since_beat_;
  int fd_;
  const RecordCodec& codec_;
  std::map<std::string, std::size_t> index_;
};

/// Limits this process to the memory available now: large allocations fail, without an out-of-memory kill.
void limit_memory(std::int64_t available_bytes) {
  std::int64_t total = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;  // pages
  std::ifstream("/proc/self/statm") >> total >> resident >> shared >> text >> library >> data;
  const auto most = static_cast<rlim_t>(data * ::sysconf(_SC_PAGESIZE) + available_bytes);
  rlimit limit{};
  if (data <= 0 || ::getrlimit(RLIMIT_DATA, &limit) != 0) return;
  limit.rlim_cur = std::min({limit.rlim_cur, limit.rlim_max, most});
  (void)::setrlimit(RLIMIT_DATA, &limit);
}

/// Throws WireError if the supervisor planned other cases.
std::vector<PlannedCase> cases_of(const GroupList& group, std::span<const PlannedCase> cases) {
  std::vector<PlannedCase> wanted;
  for (const auto& [index, key] : group) {
    const auto found = std::ranges::find(cases, key, &PlannedCase::key);
    if (found == cases.end())
      throw WireError(fmt::format("unknown case '{}': the worker declares other cases than its supervisor", key));
    wanted.push_back(with_program(*found));
  }
  return wanted;
}

}  // namespace

void run_in_process(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options,
                    RunObserver& observer, const StopFlag& stop) {
  RunOptions stoppable = options;
  stoppable.alive = [&] {
    observer.tick();
    if (stop != 0) throw Interrupted();
  };
  std::vector<PlannedCase> wanted;
  for (const PlannedCase& planned : cases) {
    if (!options.finished.contains(planned.key())) wanted.push_back(planned);
  }
  std::vector<const PlannedCase*> left;
  for (const PlannedCase& planned : wanted) left.push_back(&planned);
  Engine engine(backend, stoppable);
  try {
    std::span<const PlannedCase> rest = wanted;
    for (const std::size_t size : group_sizes(left)) {
      engine.run(rest.first(size), observer, stop);
      rest = rest.subspan(size);
    }
  } catch (const Interrupted&) {
    return;
  } catch (const DeviceLost&) {
    for (const PlannedCase& planned : wanted) {
      if (engine.finished().contains(planned.key())) continue;
      CaseRecord record = open_record(planned, options);
      blame(record, Verdict::error,
            "the device was lost in an earlier case; without isolation no other process can run this one");
      observer.finished(record);
    }
  }
}

int serve(Backend& backend, std::span<const PlannedCase> cases, const RunOptions& options, const RecordCodec& codec,
          int input_fd, int output_fd) {
  // The supervisor decides when to stop; the kernel ends the worker with it.
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!options.implementations.empty() && backend.device().kind == "cpu")
    limit_memory(backend.device().available_bytes);
  try {
    WireObserver observer(output_fd, codec);
    RunOptions beating = options;
    beating.alive = [&observer] { observer.tick(); };
    Engine engine(backend, beating);
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
          write_frame(output_fd, {FrameKind::leaving, ""});  // a new worker runs the other cases
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
      std::fputs(fmt::format("worker: {}\n", e.what()).c_str(), stderr);  // the pipe is closed
    }
    return lost_supervisor;
  }
}

}  // namespace gpubench
