#include "harness/cli/child_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "harness/cli/child_process.h"
#include "harness/cli/device.h"
#include "harness/run/timing.h"
#include "harness/run/worker_process.h"

namespace gpubench {
namespace {

constexpr double run_patience_s = 10.0;  // for a run that was told to stop: it ends its worker and writes what it has

// While a run is told to stop, further signals wait to be asked for, instead of ending this process and leaving its
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
    return ::sigtimedwait(&set_, nullptr, &wait) > 0;
  }

 private:
  sigset_t set_;
  sigset_t before_;
};

// False while it runs.
bool ended(pid_t pid, int& status) {
  const pid_t got = ::waitpid(pid, &status, WNOHANG);
  if (got < 0 && errno != EINTR) throw CannotMeasure(fmt::format("waiting for a run failed: {}", std::strerror(errno)));
  return got == pid;
}

// Passes the signal on; a second one, or no end within the patience, kills the run, and its worker with it.
void stop_run(pid_t pid, int signal, int& status) {
  const HeldSignals held;
  const Stopwatch watch;
  ::kill(pid, signal);
  while (!ended(pid, status)) {
    if (held.another() || watch.seconds() > run_patience_s) ::kill(pid, SIGKILL);
  }
}

}  // namespace

int run_child_process(const std::vector<std::string>& argv, const StopFlag& stop) {
  const FileDescriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  const pid_t pid = start_child(argv, {.descriptors = {{STDOUT_FILENO, nowhere.get()}}, .leads_group = true});
  int status = 0;
  while (!ended(pid, status)) {
    if (const int signal = stop.load(); signal != 0) {
      stop_run(pid, signal, status);
      break;
    }
    const timespec wait{0, 20'000'000};
    ::nanosleep(&wait, nullptr);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace gpubench
