#include "harness/cli/child_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "harness/cli/device.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX asks programs to declare it

namespace gpubench {
namespace {

pid_t start(const std::vector<std::string>& argv) {
  std::vector<std::string> held = argv;
  std::vector<char*> words;
  for (std::string& word : held) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw CannotMeasure(fmt::format("{} cannot be started: {}", argv.front(), std::strerror(error)));
  return pid;
}

}  // namespace

int run_child_process(const std::vector<std::string>& argv, const StopFlag& stop) {
  const pid_t pid = start(argv);
  int status = 0;
  bool told = false;
  while (true) {
    const pid_t ended = ::waitpid(pid, &status, WNOHANG);
    if (ended == pid) break;
    if (ended < 0 && errno != EINTR)
      throw CannotMeasure(fmt::format("waiting for {} failed: {}", argv.front(), std::strerror(errno)));
    if (const int signal = stop.load(); signal != 0 && !std::exchange(told, true)) ::kill(pid, signal);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace gpubench
