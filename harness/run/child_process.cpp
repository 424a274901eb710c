#include "harness/run/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "harness/core/descriptor.h"
#include "harness/core/error.h"
#include "harness/run/timing.h"

namespace gpubench {
namespace {

constexpr int above_all_given = 20;  // where a descriptor is out of the way of those that the child is given
constexpr int look_ms = 2;
constexpr int unseen_end = 255 << 8;  // what nobody saw end well did not: exited with status 255

// Between fork and exec: only what is safe in a signal handler. `given`: the child's number and ours.
[[noreturn]] void become(char* const* words, const ChildSetup& setup, std::vector<std::pair<int, int>>& given,
                         pid_t parent, int complaints) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before the line above
  if (setup.leads_group) ::setpgid(0, 0);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, nullptr);  // it may have children of its own
  if (setup.usual_signals) {
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) ::sigaction(signal, &usual, nullptr);
  }
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  bool ready = true;
  for (auto& [its, ours] : given) {
    ours = ::fcntl(ours, F_DUPFD_CLOEXEC, above_all_given);
    ready = ready && ours >= 0;
  }
  for (const auto& [its, ours] : given) ready = ready && ::dup2(ours, its) >= 0;
  if (ready) ::execv(words[0], words);
  const int error = errno;
  (void)!::write(complaints, &error, sizeof error);
  ::_exit(127);
}

}  // namespace

pid_t start_child(const std::vector<std::string>& argv, const ChildSetup& setup) {
  std::vector<std::string> held = argv;
  std::vector<char*> words;
  for (std::string& word : held) words.push_back(word.data());
  words.push_back(nullptr);
  std::vector<std::pair<int, int>> given(setup.descriptors.begin(), setup.descriptors.end());
  int ends[2];  // empty and closed once the child has become `argv`; else the error
  if (::pipe2(ends, O_CLOEXEC) != 0) throw BackendError(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const Descriptor reading(ends[0]);
  Descriptor writing(ends[1]);
  Descriptor complaints(::fcntl(writing.get(), F_DUPFD_CLOEXEC, above_all_given));
  const pid_t parent = ::getpid();
  const pid_t pid = complaints.get() < 0 ? -1 : ::fork();
  if (pid == 0) become(words.data(), setup, given, parent, complaints.get());
  int error = pid < 0 ? errno : 0;
  writing = Descriptor();
  complaints = Descriptor();
  if (pid > 0) (void)retried([&] { return ::read(reading.get(), &error, sizeof error); });
  if (error == 0) return pid;
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  throw BackendError(fmt::format("could not start '{}': {}", argv.front(), std::strerror(error)));
}

bool ChildEnd::within(double seconds) {
  const Stopwatch watch;
  while (!ended_) {
    const pid_t got = ::waitpid(pid_, &status_, WNOHANG);
    ended_ = got == pid_ || (got < 0 && errno != EINTR);
    if (ended_ && got != pid_) status_ = unseen_end;
    if (ended_ || watch.seconds() >= seconds) break;
    ::poll(nullptr, 0, look_ms);
  }
  return ended_;
}

std::string describe_status(int status) {
  if (WIFSIGNALED(status))
    return fmt::format("ended by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace gpubench
