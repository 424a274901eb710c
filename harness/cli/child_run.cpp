#include "harness/cli/child_run.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ctime>

#include "harness/core/descriptor.h"
#include "harness/run/child_process.h"
#include "harness/run/timing.h"

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

int run_child_process(const std::vector<std::string>& argv, const StopFlag& stop) {
  constexpr double tick_s = 0.02;
  const Descriptor nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  ChildEnd run(start_child(argv, {.descriptors = {{STDOUT_FILENO, nowhere.get()}}, .leads_group = true}));
  while (!run.within(tick_s)) {
    if (const int signal = stop.load(); signal != 0) stop_run(run, signal);
  }
  const int status = run.status();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace gpubench
