// From a process to run_cli(): streams, variables, terminal, path and signals; and from errors to exit codes.
#pragma once

#include <signal.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/environment.h"

namespace gpubench {

/// main() of a program. Signals end it until a verb calls Environment::catch_signals. `revision`: built_revision(). A
/// worker's standard output is redirected to standard error, so that libraries that print cannot corrupt results.
int run_program(int argc, char** argv, std::span<const Suite> suites, std::vector<BackendEntry> backends,
                std::string_view revision = {});

/// Does not catch signals.
[[nodiscard]] Environment process_environment(int argc, char** argv, std::span<const Suite> suites,
                                              std::vector<BackendEntry> backends, std::string_view revision = {});

/// Whether this signal ends the process at once, after an earlier one asked it to stop. False for: the first signal;
/// the same signal within one second if both come from one process (timeout(1) signals a process and then its group) or
/// one comes from the parent (service managers signal every process; calibrate passes signals on); another signal
/// within a quarter of a second (scripts send several). Records the first. For signal handlers, or with signals
/// blocked; one thread at a time.
[[nodiscard]] bool is_second_request(int signal, const siginfo_t& info);

/// The absolute path of this program, independent of argv[0] and of later changes of the working directory.
[[nodiscard]] std::string own_path(const char* argv0);

/// Sets own_path() in an interpreter that the program started.
void set_program(const char* program);

/// From here on an uncaught std::bad_alloc, as from a destructor of the JSON library, ends the process with a message
/// and exit code 3 instead of abort().
void end_cleanly_without_memory();

/// The CPU backend, and the CUDA module if the folder of `argv0` has it.
[[nodiscard]] std::vector<BackendEntry> built_in_backends(const char* argv0);

/// The revision of the sources: twelve digits of the commit, "-dirty" if tracked files differ; "" if unknown. Defined
/// by scripts/cmake/GpubenchRevision.cmake.
[[nodiscard]] std::string_view built_revision();

/// The program gpubench-gbench. Flags that begin with --benchmark_ are the library's (filter, format, out, repetitions,
/// list_tests, ...), the others those of `gpubench run` that select and measure. Returns the exit code of a run with
/// these verdicts; 0 for a list. Throws nothing.
int run_gbench(int argc, char** argv, const Environment& environment);

}  // namespace gpubench
