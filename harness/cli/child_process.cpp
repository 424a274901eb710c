#include "harness/cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "harness/cli/device.h"
#include "harness/report/visible_text.h"

namespace gpubench {
namespace {

constexpr int above_all_given = 20;  // where a descriptor is out of the way of those that the child is given

// Between fork and exec: only what is safe in a signal handler.
[[noreturn]] void become(char* const* words, const ChildSetup& setup, pid_t parent, int complaints) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it ended before the line above
  if (setup.leads_group) ::setpgid(0, 0);
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, nullptr);  // it may have children of its own
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  bool given = true;
  for (const auto& [its, ours] : setup.descriptors) {
    given = given && (its == ours ? ::fcntl(ours, F_SETFD, 0) : ::dup2(ours, its)) >= 0;
  }
  if (given) ::execv(words[0], words);
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
  int ends[2];  // empty and closed once the child has become `argv`; else the error
  if (::pipe2(ends, O_CLOEXEC) != 0) throw CannotMeasure(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
  const int complaints = ::fcntl(ends[1], F_DUPFD_CLOEXEC, above_all_given);
  ::close(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = complaints < 0 ? -1 : ::fork();
  if (pid == 0) become(words.data(), setup, parent, complaints);
  int error = pid < 0 ? errno : 0;
  if (complaints >= 0) ::close(complaints);
  while (pid > 0 && ::read(ends[0], &error, sizeof error) < 0 && errno == EINTR) continue;
  ::close(ends[0]);
  if (error == 0) return pid;
  if (pid > 0) ::waitpid(pid, nullptr, 0);
  throw CannotMeasure(fmt::format("cannot start {}: {}", visible(argv.front()), std::strerror(error)));
}

}  // namespace gpubench
