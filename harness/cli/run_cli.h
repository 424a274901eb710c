// The program: what a real process gives to run_cli() (streams, variables, terminal, path, signals), and run_cli()
// itself, from the command line to a verb and from whatever goes wrong to an exit code.
#pragma once

#include <signal.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/environment.h"

namespace gpubench {

/// main() of a program with these suites and backends. Signals end it, until a verb that has something to lose
/// catches them (Environment::catch_signals). `revision`: built_revision(), "" where unknown. A worker's
/// standard output goes to standard error, so that libraries that print cannot spoil results.
int run_program(int argc, char** argv, std::span<const Suite> suites, std::vector<BackendEntry> backends,
                std::string_view revision = {});

/// What run_program() passes to run_cli(): this process's streams, variables, terminal and stop flag. Signals are not
/// caught yet.
[[nodiscard]] Environment process_environment(int argc, char** argv, std::span<const Suite> suites,
                                              std::vector<BackendEntry> backends, std::string_view revision = {});

/// Whether this signal ends at once what an earlier one has asked to stop: not the first, nor the same signal again
/// within a second where both come from one process (timeout(1) signals a process and then its group) or one comes from
/// the parent (a service manager signals every process, and calibrate passes its own signal on), nor any other within a
/// quarter of a second: a script that ends everything sends several. Remembers the first.
/// For signal handlers, or where signals are blocked; one thread at a time.
[[nodiscard]] bool is_second_request(int signal, const siginfo_t& info);

/// The path of this program itself, whatever argv[0] was and wherever the working directory is by now.
[[nodiscard]] std::string own_path(const char* argv0);

/// From here on own_path() is this: of an interpreter that runs as a child of the program.
void stand_in_for(const char* program);

/// From here on std::bad_alloc that nobody can catch, as of a destructor, ends the process with a sentence on standard
/// error and exit code 3 instead of abort(): the JSON library's destructors allocate.
void end_cleanly_without_memory();

/// The backends of the real programs: the CPU's, and the CUDA module where there is one. `argv0`: of the program,
/// beside which the module is looked for.
[[nodiscard]] std::vector<BackendEntry> built_in_backends(const char* argv0);

/// The revision of the sources that a program was built from: twelve digits of the commit, with "-dirty" where tracked
/// files differed from it; "" where unknown. Defined by scripts/cmake/GpubenchRevision.cmake.
[[nodiscard]] std::string_view built_revision();

/// The whole program gpubench-gbench: flags that begin with --benchmark_ are the library's (filter, format, out,
/// repetitions, list_tests, ...), the others those of `gpubench run` that choose and measure. Returns the exit code of
/// a run with these verdicts (exit_code.h); 0 for a list. Throws nothing.
int run_gbench(int argc, char** argv, const Environment& environment);

}  // namespace gpubench
