#include "harness/cli/repeated_runs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <system_error>

#include "harness/cli/exit_code.h"
#include "harness/cli/run_cli.h"
#include "harness/cli/verb_output.h"
#include "harness/core/error.h"
#include "harness/core/file/atomic_file.h"
#include "harness/run/child_process.h"

namespace gpubench {
namespace {

constexpr double run_patience_s = 10.0;  // for a stopping run to end its worker and write its report

// While a run stops, signals are blocked and polled, so that they don't end this process before it removes its folder.
class HeldSignals {
 public:
  HeldSignals() {
    ::sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set_, signal);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
  }
  HeldSignals(const HeldSignals&) = delete;  // the destructor restores the signal mask
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  // Waits up to 20 ms for a signal.
  [[nodiscard]] bool another() const {
    const timespec wait{0, 20'000'000};
    siginfo_t info{};
    const int signal = ::sigtimedwait(&set_, &info, &wait);
    return signal > 0 && is_second_request(signal, info);
  }

 private:
  sigset_t set_;
  sigset_t before_;
};

// Whether the child is stopped by a signal and not continued since.
bool is_stopped(pid_t child) {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(child), &info, WSTOPPED | WNOHANG | WNOWAIT) == 0 && info.si_pid == child;
}

// Passes the signal on; kills the run and its worker after a second signal or the patience.
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
  constexpr int first_of_signals = 128;  // offset of a signal in an exit code
  const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ChildEnd run(start_child(argv, {.descriptors = {{STDOUT_FILENO, nowhere.get()}}, .leads_group = true}));
  Stopwatch going, tick;
  std::string trouble;
  while (!run.within(tick_s)) {
    if (const int signal = stop.load(); signal != 0) stop_run(run, signal);
    // After a pause of all processes this one may continue first: its sleep does not count.
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
                      verb == "calibrate" ? "; choose another with --keep DIR" : "; choose another with TMPDIR"));
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

int usable_processors() {
  cpu_set_t all;
  return ::sched_getaffinity(0, sizeof all, &all) == 0 ? CPU_COUNT(&all) : 0;
}

OnProcessors::OnProcessors(int count, int skipped) {
  if (::sched_getaffinity(0, sizeof all_, &all_) != 0) throw CannotMeasure("cannot read the usable processors");
  cpu_set_t fewer;
  CPU_ZERO(&fewer);
  for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE && CPU_COUNT(&fewer) < count; ++cpu) {
    if (CPU_ISSET(cpu, &all_) && seen++ >= skipped) CPU_SET(cpu, &fewer);
  }
  if (::sched_setaffinity(0, sizeof fewer, &fewer) != 0)
    throw CannotMeasure("cannot choose the processors of another process");
}

}  // namespace gpubench
