#include "harness/cli/program.h"

#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string_view>
#include <utility>

#include "harness/cli/children.h"
#include "harness/cli/device.h"
#include "harness/cli/verbs.h"

namespace gpubench {
namespace {

StopFlag stop_flag{0};
static_assert(StopFlag::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void on_signal(int signal, siginfo_t* info, void*) {
  if (is_another_wish(signal, *info)) ::_exit(128 + signal);
  stop_flag = signal;
}

void catch_signals() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;  // no SA_RESTART: waits end, so that the flag is seen
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;  // nohup
    ::sigaction(signal, &action, nullptr);
  }
}

std::terminate_handler terminate_otherwise = nullptr;

[[noreturn]] void on_terminate() {
  try {
    if (const std::exception_ptr reason = std::current_exception()) std::rethrow_exception(reason);
  } catch (const std::bad_alloc&) {
    (void)!::write(STDERR_FILENO, out_of_memory.data(), out_of_memory.size());
    ::_exit(exit_codes::could_not_measure);
  } catch (...) {
    // It is told below.
  }
  terminate_otherwise();
  std::abort();
}

// Whoever starts the program may have closed these, and then a pipe or a report would take their numbers. What is
// written to a closed standard output is lost, and has to fail as before: it is open for reading only.
void open_standard_descriptors() {
  for (const auto& [fd, mode] :
       {std::pair{STDIN_FILENO, O_RDONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_WRONLY}}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", mode) != fd) ::_exit(exit_codes::could_not_measure);  // there is no place to say why
  }
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

// The descriptor that a helper was given (--worker-output N); -1 of a program that a user started.
int helper_output(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--worker-output") return std::atoi(argv[i + 1]);
  }
  return -1;
}

}  // namespace

void end_cleanly_without_memory() { terminate_otherwise = std::set_terminate(on_terminate); }

std::string own_path(const char* argv0) {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path.string();
  // Without /proc: what the kernel was asked to start, which a shell had looked up.
  const auto started = ::getauxval(AT_EXECFN);
  return started == 0 ? std::string(argv0) : std::string(reinterpret_cast<const char*>(started));
}

Environment process_environment(int argc, char** argv, std::span<const Suite> suites,
                                std::vector<BackendEntry> backends, std::string_view revision) {
  const std::string program = own_path(argc > 0 ? argv[0] : "gpubench");
  const bool is_helper = helper_output(argc, argv) >= 0;  // a child already: it is its parent that may not wait
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
          [program, is_helper](double deadline_s) {
            return is_helper ? probe_nvidia_driver() : ask_nvidia_driver(program, deadline_s, stop_flag);
          },
          program,
          stop_flag,
          names_of_variables(),
          std::string(revision),
          [program](double deadline_s) { return ask_gpus(program, deadline_s, stop_flag); },
          terminal_columns(STDOUT_FILENO),
          [] { return read_host(); },
          catch_signals,
          [program](const BackendEntry&, double deadline_s) { return ask_libraries(program, deadline_s, stop_flag); }};
}

int run_program(int argc, char** argv, std::span<const Suite> suites, std::vector<BackendEntry> backends,
                std::string_view revision) {
  std::ios::sync_with_stdio(false);
  end_cleanly_without_memory();
  open_standard_descriptors();
  std::signal(SIGCHLD, SIG_DFL);  // where it was left ignored, children vanish before they are waited for
  // A reader that went away, and a file that may grow no more, are errors of the write, not the end of the run.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  if (const int output = helper_output(argc, argv); output >= 0) {
    end_with_parent(output);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  return run_cli(argc, argv, process_environment(argc, argv, suites, std::move(backends), revision));
}

}  // namespace gpubench
