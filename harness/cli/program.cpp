#include "harness/cli/program.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <string_view>

namespace gpubench {
namespace {

StopFlag stop_flag{0};
static_assert(StopFlag::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void on_signal(int signal) {
  if (stop_flag.exchange(signal) != 0) ::_exit(128 + signal);
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // no SA_RESTART: waits end, so that the flag is seen
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  struct sigaction inherited {};
  ::sigaction(SIGHUP, nullptr, &inherited);
  if (inherited.sa_handler != SIG_IGN) ::sigaction(SIGHUP, &action, nullptr);  // nohup's wish is kept
}

int terminal_columns(int stream) {
  winsize size{};
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

std::vector<std::string> names_of_variables() {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

bool is_helper(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--worker-output") return true;
  }
  return false;
}

}  // namespace

std::string own_path(const char* argv0) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(argv0) : path.string();
}

Environment process_environment(int argc, char** argv, std::span<const Suite> suites,
                                std::vector<BackendEntry> backends, std::string_view revision) {
  return {suites,
          std::move(backends),
          std::cout,
          std::cerr,
          ::isatty(STDOUT_FILENO) == 1,
          ::isatty(STDERR_FILENO) == 1,
          terminal_columns(STDERR_FILENO),
          [](const char* variable) {
            const char* value = std::getenv(variable);
            return std::string(value == nullptr ? "" : value);
          },
          [] { return probe_nvidia_driver(); },
          own_path(argc > 0 ? argv[0] : "gpubench"),
          stop_flag,
          names_of_variables(),
          std::string(revision),
          [] { return survey_gpus(); },
          terminal_columns(STDOUT_FILENO)};
}

int run_program(int argc, char** argv, std::span<const Suite> suites, std::vector<BackendEntry> backends,
                std::string_view revision) {
  std::ios::sync_with_stdio(false);
  // A reader that went away, and a file that may grow no more, are errors of the write, not the end of the run.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  if (is_helper(argc, argv)) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);  // signals keep their default action: a worker that is told to end, ends
  } else {
    catch_signals();
  }
  return run_cli(argc, argv, process_environment(argc, argv, suites, std::move(backends), revision));
}

}  // namespace gpubench
