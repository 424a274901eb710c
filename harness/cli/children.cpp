#include "harness/cli/children.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <utility>

#include "harness/cli/device.h"
#include "harness/cli/exit_code.h"
#include "harness/cli/verb_output.h"
#include "harness/core/error.h"
#include "harness/core/file/atomic_file.h"
#include "harness/core/file/descriptor.h"
#include "harness/core/text/visible_text.h"
#include "harness/run/child_process.h"
#include "harness/run/timing.h"

namespace gpubench {
namespace {

constexpr int given_fd = 3;  // what the child writes to
constexpr int tick_ms = 20;
constexpr double end_patience_s = 2.0;  // for the end of what was killed
constexpr double least_start_s = 60.0;  // of a program, on a machine that does other things
constexpr std::size_t most_bytes = std::size_t{16} << 20U;

// What a child has said so far.
class Listener {
 public:
  // False at the end of the stream.
  bool take(int fd) {
    char block[4096];
    const ssize_t count = ::read(fd, block, sizeof block);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (count <= 0 || pending_.size() > most_bytes) return false;
    pending_.append(block, static_cast<std::size_t>(count));
    for (std::size_t end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n')) {
      if (end > 0) (pending_.front() == 'A' ? answer_ : call_) = pending_.substr(1, end - 1);
      pending_.erase(0, end + 1);
      heard_ = true;
    }
    return true;
  }
  [[nodiscard]] const std::string& answer() const { return answer_; }
  [[nodiscard]] const std::string& call() const { return call_; }
  [[nodiscard]] bool heard() const { return heard_; }

 private:
  std::string pending_, answer_, call_;
  bool heard_ = false;
};

// Ends one that would not end by itself.
void kill(ChildEnd& child) {
  if (child.ended()) return;
  ::kill(child.pid(), SIGKILL);
  (void)child.within(end_patience_s);
}

std::pair<Descriptor, Descriptor> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw CannotMeasure(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

pid_t started(const std::vector<std::string>& argv, const Descriptor& writing, Printing printing) {
  try {
    if (printing == Printing::shown) return start_child(argv, {.descriptors = {{given_fd, writing.get()}}});
    const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
    return start_child(argv, {.descriptors = {{given_fd, writing.get()}, {STDERR_FILENO, nowhere.get()}}});
  } catch (const BackendError& e) {
    throw CannotMeasure(e.what());
  }
}

std::string in_call(std::string_view before, const std::string& call) {
  return call.empty() ? std::string() : fmt::format("{}{}", before, visible(call));
}

}  // namespace

void Teller::send(char kind, std::string_view line) const {
  const std::string text = kind + std::string(line) + '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw CannotMeasure(fmt::format("cannot write to descriptor {}: {}", fd_, std::strerror(errno)));
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

Heard ask(std::vector<std::string> argv, double deadline_s, const StopFlag& stop, Printing printing) {
  argv.insert(argv.end(), {"--worker-output", std::to_string(given_fd)});
  auto [reading, writing] = make_pipe();
  ChildEnd child(started(argv, writing, printing));
  writing.close();
  Listener listener;
  Stopwatch silence;
  while (true) {
    if (stop != 0) {
      kill(child);
      throw CannotMeasure("interrupted");
    }
    pollfd readable{reading.get(), POLLIN, 0};
    if (::poll(&readable, 1, tick_ms) > 0) {
      if (!listener.take(reading.get())) break;
      silence = Stopwatch();
      continue;
    }
    const double limit_s = listener.heard() ? deadline_s : std::max(deadline_s, least_start_s);
    if (deadline_s <= 0.0 || silence.seconds() <= limit_s) continue;
    kill(child);
    return {listener.answer(), fmt::format("does not answer ({}{:.3g} s)",
                                           listener.call().empty() ? "" : visible(listener.call()) + ", ", limit_s)};
  }
  if (!child.within(end_patience_s)) {
    kill(child);
    return {listener.answer(), "does not end" + in_call(" after ", listener.call())};
  }
  if (child.status() == 0) return {listener.answer(), ""};
  return {listener.answer(), child.description() + in_call(" in ", listener.call())};
}

void end_with_parent(int output_fd) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A parent that ended before that sends no signal, but its end of the pipe is closed.
  pollfd listened{output_fd, POLLOUT, 0};
  if (::poll(&listened, 1, 0) > 0 && (listened.revents & (POLLERR | POLLHUP)) != 0) ::_exit(1);
}

bool is_another_wish(int signal, const siginfo_t& info) {
  constexpr std::int64_t ns = 1'000'000'000, again_ns = ns, together_ns = ns / 4;
  static struct {
    int signal = 0;
    pid_t sender = 0;
    std::int64_t at_ns = 0;
  } first;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // as all here it may be called in a signal handler
  const std::int64_t now_ns = now.tv_sec * ns + now.tv_nsec;
  const bool of_process = info.si_code == SI_USER;
  if (first.signal == 0) {
    first = {signal, of_process ? info.si_pid : -1, now_ns};
    return false;
  }
  const pid_t parent = ::getppid();
  const bool again = of_process && (info.si_pid == first.sender || info.si_pid == parent || first.sender == parent);
  if (signal != first.signal) return now_ns - first.at_ns > together_ns;
  return !again || now_ns - first.at_ns > again_ns;
}

namespace {

constexpr double run_patience_s = 10.0;  // for a run that was told to stop: it ends its worker and writes what it has

// While a run is stopping, further signals are blocked and polled, instead of ending this process and leaving its
// folder behind.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set_, signal);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;  // restores the process's mask
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  // Waits up to 20 ms for one.
  [[nodiscard]] bool another() const {
    const timespec wait{0, 20'000'000};
    siginfo_t info{};
    const int signal = ::sigtimedwait(&set_, &info, &wait);
    return signal > 0 && is_another_wish(signal, info);
  }

 private:
  sigset_t set_;
  sigset_t before_;
};

// Whether a signal has stopped the child, which has not been continued since.
bool is_stopped(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

// Passes the signal on; a second one, or no end within the patience, kills the run, and its worker with it.
void stop_run(ChildEnd& run, int signal) {
  const HeldSignals held;
  const Stopwatch watch;
  ::kill(run.pid(), signal);
  while (!run.within(0.0)) {
    if (held.another() || watch.seconds() > run_patience_s) ::kill(run.pid(), SIGKILL);
  }
}

}  // namespace

int run_child_process(const std::vector<std::string>& argv, const StopFlag& stop, std::ostream& err, double stopped_s) {
  constexpr double tick_s = 0.02;
  constexpr int first_of_signals = 128;  // exit codes of a run that a signal has interrupted
  const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ChildEnd run(start_child(argv, {.descriptors = {{STDOUT_FILENO, nowhere.get()}}, .leads_group = true}));
  Stopwatch going, tick;
  std::string trouble;
  while (!run.within(tick_s)) {
    if (const int signal = stop.load(); signal != 0) stop_run(run, signal);
    // After a pause of all processes this one may go on first: what it slept is not the run's doing.
    constexpr double pause_s = 1.0;
    if (!is_stopped(run.pid()) || tick.seconds() > pause_s) going = Stopwatch();
    tick = Stopwatch();
    if (going.seconds() <= stopped_s) continue;
    trouble = fmt::format("was stopped by a signal for {:.3g} s, and was killed", stopped_s);
    ::kill(-run.pid(), SIGKILL);
    going = Stopwatch();
  }
  const int status = run.status();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : first_of_signals + WTERMSIG(status);
  if (stop != 0 || code < first_of_signals) return code;
  if (trouble.empty())
    trouble =
        WIFEXITED(status) ? fmt::format("was interrupted by signal {}", code - first_of_signals) : run.description();
  err << "gpubench: a run " << trouble << std::endl;
  return exit_codes::could_not_measure;
}

ReportFolder::ReportFolder(const std::string& keep, std::string_view verb) : path_(keep), temporary_(keep.empty()) {
  if (temporary_) {
    path_ = (std::filesystem::temp_directory_path() / fmt::format("gpubench-{}.XXXXXX", verb)).string();
    if (::mkdtemp(path_.data()) == nullptr)
      throw WriteError(
          fmt::format("{}: cannot create a folder for the reports: {}{}", path_, std::generic_category().message(errno),
                      verb == "calibrate" ? "; --keep DIR names another place" : "; TMPDIR names another place"));
    return;
  }
  try {
    make_folder(path_);
  } catch (const WriteError& e) {
    fail_to_write("--keep", e);
  }
}

ReportFolder::~ReportFolder() {
  std::error_code ignored;
  if (temporary_) std::filesystem::remove_all(path_, ignored);
}

std::string ReportFolder::report(int run) const {
  return (std::filesystem::path(path_) / fmt::format("run-{:03}.json", run)).string();
}

}  // namespace gpubench
