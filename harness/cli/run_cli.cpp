#include "harness/cli/run_cli.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string_view>
#include <utility>

#include "harness/cli/cuda_module.h"
#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/flags.h"
#include "harness/cli/options.h"
#include "harness/cli/process_ranks.h"
#include "harness/cli/run_context.h"
#include "harness/cli/selection.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verb.h"
#include "harness/core/error.h"
#include "harness/core/text/visible_text.h"
#include "harness/verify/working_children.h"

namespace gpubench {
namespace {

StopFlag stop_flag{0};
static_assert(StopFlag::is_always_lock_free, "a signal handler may only touch lock-free atomics");

extern "C" void on_signal(int signal, siginfo_t* info, void*) {
  if (is_second_request(signal, *info)) ::_exit(128 + signal);
  stop_flag = signal;
}

void catch_signals() {
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO;  // no SA_RESTART: waits must end to see the flag
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(signal, nullptr, &before);
    if (signal == SIGHUP && before.sa_handler == SIG_IGN) continue;  // nohup
    ::sigaction(signal, &action, nullptr);
  }
}

std::string standing_in_for;

std::terminate_handler terminate_otherwise = nullptr;

[[noreturn]] void on_terminate() {
  try {
    if (const std::exception_ptr reason = std::current_exception()) std::rethrow_exception(reason);
  } catch (const std::bad_alloc&) {
    (void)!::write(STDERR_FILENO, out_of_memory.data(), out_of_memory.size());
    ::_exit(exit_codes::could_not_measure);
  } catch (...) {
  }
  terminate_otherwise();
  std::abort();
}

// If these are closed, a pipe or a report would get their numbers. A closed standard output is opened read-only, so
// that writes still fail.
void open_standard_descriptors() {
  for (const auto& [fd, mode] :
       {std::pair{STDIN_FILENO, O_RDONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_WRONLY}}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", mode) != fd) ::_exit(exit_codes::could_not_measure);  // standard error may be closed
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

// The descriptor of a child process (--worker-output N); -1 for other processes.
int helper_output(int argc, char** argv) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--worker-output") return std::atoi(argv[i + 1]);
  }
  return -1;
}

// A shell limit too low to work with; empty if there is none.
std::string low_limit() {
  constexpr rlim_t min_stack = rlim_t{512} << 10U, min_files = 64;
  rlimit stack{}, files{};
  if (::getrlimit(RLIMIT_STACK, &stack) == 0 && stack.rlim_cur < min_stack)
    return fmt::format("a stack of {} KiB is too small; allow at least {} (ulimit -s)", stack.rlim_cur >> 10U,
                       min_stack >> 10U);
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < min_files)
    return fmt::format("{} open files are too few; allow at least {} (ulimit -n)", files.rlim_cur, min_files);
  return "";
}

}  // namespace

bool is_second_request(int signal, const siginfo_t& info) {
  constexpr std::int64_t ns = 1'000'000'000, again_ns = ns, together_ns = ns / 4;
  static struct {
    int signal = 0;
    pid_t sender = 0;
    std::int64_t at_ns = 0;
  } first;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);  // async-signal-safe, as all calls here
  const std::int64_t now_ns = now.tv_sec * ns + now.tv_nsec;
  const bool of_process = info.si_code == SI_USER;
  if (first.signal == 0) {
    first = {signal, of_process ? info.si_pid : -1, now_ns};
    return false;
  }
  const pid_t parent = ::getppid();
  const bool again = of_process && (info.si_pid == first.sender || info.si_pid == parent || first.sender == parent);
  if (signal != first.signal) return now_ns - first.at_ns > together_ns;
  return !again || now_ns - first.at_ns > again_ns;
}

void end_cleanly_without_memory() { terminate_otherwise = std::set_terminate(on_terminate); }

void set_program(const char* program) { standing_in_for = program; }

std::string own_path(const char* argv0) {
  if (!standing_in_for.empty()) return standing_in_for;
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) return path.string();
  // Without /proc: the file that the kernel started.
  const auto started = ::getauxval(AT_EXECFN);
  return started == 0 ? std::string(argv0) : std::string(reinterpret_cast<const char*>(started));
}

Environment process_environment(int argc, char** argv, std::span<const Suite> suites,
                                std::vector<BackendEntry> backends, std::string_view revision) {
  const std::string program = own_path(argc > 0 ? argv[0] : "gpubench");
  const bool is_helper = helper_output(argc, argv) >= 0;  // the parent of a child limits its waits
  return {
      suites,
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
        return is_helper ? probe_nvidia_driver() : query_nvidia_driver(program, deadline_s, stop_flag);
      },
      program,
      stop_flag,
      names_of_variables(),
      std::string(revision),
      [program](double deadline_s) { return query_gpus(program, deadline_s, stop_flag); },
      terminal_columns(STDOUT_FILENO),
      [] { return read_host(); },
      catch_signals,
      [program](const BackendEntry&, double deadline_s) { return query_libraries(program, deadline_s, stop_flag); },
      [] { return std::time(nullptr); },
      std::cin,
      [program](const LauncherPlace& place, double send_limit_s) { return join_by_mpi(program, place, send_limit_s); }};
}

int run_program(int argc, char** argv, std::span<const Suite> suites, std::vector<BackendEntry> backends,
                std::string_view revision) {
  std::ios::sync_with_stdio(false);
  end_cleanly_without_memory();
  open_standard_descriptors();
  std::signal(SIGCHLD, SIG_DFL);  // if it is ignored, children vanish before they are waited for
  // A closed pipe and a file size limit are write errors; they must not end the run.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  if (const int output = helper_output(argc, argv); output >= 0) {
    end_with_parent(output);
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  } else if (const std::string low = low_limit(); !low.empty()) {
    std::fprintf(stderr, "gpubench: %s\n", low.c_str());
    return exit_codes::could_not_measure;
  }
  return run_cli(argc, argv, process_environment(argc, argv, suites, std::move(backends), revision));
}

int run_cli(int argc, const char* const* argv, const Environment& environment) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  Options options;
  LauncherPlace place;  // only the first of several processes prints common notes
  const auto complain = [&](const std::exception& e) {
    if (place.rank == 0) environment.err << "gpubench: " << visible(e.what()) << std::endl;
  };
  try {
    place = launcher_place(environment.variable);
    options = parse_options(words, environment.variable, suite_names(environment.suites));
    const bool is_helper = options.is_worker() || options.worker_output >= 0;
    if (is_helper || !options.mpi) place = {};
    if (options.is_empty_command && place.rank > 0 && !place.several_commands) return exit_codes::usage;
    if (options.is_empty_command) {
      environment.err << short_help(columns_of(Stream::err, environment)) << std::flush;
      return exit_codes::usage;
    }
    if (options.trust_libraries) ::setenv(trust_libraries_variable, "on", 1);
    const auto run_and_report = [](const Options& with, const Environment& in) {
      const int code = with.verb->act(with, in);
      in.out.flush();
      if (in.out.good()) return code;
      in.err << "gpubench: standard output could not be written" << std::endl;
      return code == exit_codes::ok ? exit_codes::could_not_measure : code;
    };
    if (place.processes == 1) return run_and_report(options, environment);
    if (options.verb == &default_verb() && !options.dry_run)
      return run_all_ranks(options, environment, place, run_and_report);
    // Other command lines of the launcher run alone; their children must not join MPI.
    ::setenv("GPUBENCH_MPI", "off", 1);
    // If process 0 executes 'run', it waits for this process in MPI_Init.
    if (place.rank > 0 && place.several_commands && options.verb != &default_verb())
      throw UsageError(fmt::format("'{}' runs only in process 0; start all processes with the same command line",
                                   options.verb->name));
    if (place.rank > 0) return exit_codes::ok;
    environment.err << fmt::format("note: {} started {} processes; this is the output of the first\n", place.launcher,
                                   place.processes);
    return run_and_report(options, environment);
  } catch (const UsageError& e) {
    if (place.rank > 0 && place.several_commands) {  // process 0's command line may be valid
      environment.err << fmt::format("gpubench: process {} of {}: {}", place.rank, place.processes, visible(e.what()))
                      << std::endl;
    }
    complain(e);
    if (place.rank == 0 && !options.from_environment.empty()) {  // the error may be in them, not in the command line
      environment.err << "gpubench: set in the environment: " << variables_text(options.from_environment) << std::endl;
    }
    return exit_codes::usage;
  } catch (const std::bad_alloc&) {
    environment.err << out_of_memory << std::flush;
    return exit_codes::could_not_measure;
  } catch (const std::exception& e) {  // CannotMeasure, and other errors that end the run
    complain(e);
    const int signal = environment.stop.load();
    return signal == 0 ? exit_codes::could_not_measure : exit_code({{}, signal, true});
  }
}

}  // namespace gpubench
