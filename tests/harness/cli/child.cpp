#include "tests/harness/cli/child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace gpubench {
namespace {

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  }
};

[[noreturn]] void become(const Words& words, const std::map<std::string, std::string>& variables, int out, int err) {
  for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
  ::signal(SIGHUP, SIG_DFL);  // the test's parent may have ignored it
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  Words held = words;
  std::vector<char*> argv;
  for (std::string& word : held) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

// False at the end of the stream.
bool take(int fd, std::string& text) {
  char block[4096];
  const ssize_t count = ::read(fd, block, sizeof block);
  if (count > 0) text.append(block, static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

ChildResult run_child(const Words& words, const std::map<std::string, std::string>& variables,
                      const std::string& wait_for, const std::function<void(int)>& while_running) {
  if (!while_running) return run_child_in_steps(words, variables, {});
  return run_child_in_steps(words, variables, {{wait_for, while_running}});
}

ChildResult run_child_in_steps(const Words& words, const std::map<std::string, std::string>& variables,
                               const std::vector<std::pair<std::string, std::function<void(int)>>>& steps) {
  const Pipe out, err;
  const pid_t pid = ::fork();
  if (pid < 0) throw std::runtime_error("fork");
  if (pid == 0) become(words, variables, out.ends[1], err.ends[1]);
  ::close(out.ends[1]);
  ::close(err.ends[1]);
  ChildResult result;
  std::size_t step = 0, seen = 0;
  for (; step < steps.size() && steps[step].first.empty(); ++step) steps[step].second(pid);
  pollfd streams[2] = {{out.ends[0], POLLIN, 0}, {err.ends[0], POLLIN, 0}};
  while (streams[0].fd >= 0 || streams[1].fd >= 0) {
    ::poll(streams, 2, -1);
    if (streams[0].revents != 0 && !take(streams[0].fd, result.out)) streams[0].fd = -1;
    if (streams[1].revents != 0 && !take(streams[1].fd, result.err)) streams[1].fd = -1;
    const std::size_t found = step < steps.size() ? result.err.find(steps[step].first, seen) : std::string::npos;
    if (found == std::string::npos) continue;
    seen = found + steps[step].first.size();
    steps[step++].second(pid);
  }
  ::close(out.ends[0]);
  ::close(err.ends[0]);
  int status = 0;
  ::waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace gpubench
