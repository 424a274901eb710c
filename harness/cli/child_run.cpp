#include "harness/cli/child_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "harness/cli/child_process.h"
#include "harness/cli/device.h"

namespace gpubench {
int run_child_process(const std::vector<std::string>& argv, const StopFlag& stop) {
  const pid_t pid = start_child(argv, [](posix_spawn_file_actions_t& actions) {
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  });
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
