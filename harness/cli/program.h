// What a real process gives to run_cli(): its streams, variables, terminal, path and signals.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/cli/environment.h"

namespace gpubench {

/// main() of a program with these suites and backends. SIGINT, SIGTERM and SIGHUP (unless ignored, as under nohup)
/// raise the stop flag; a second one ends the process at once. `revision`: of the sources (revision.h), "" where
/// unknown. A worker's standard output is turned to standard error: libraries that print cannot spoil results.
int run_program(int argc, char** argv, std::span<const Suite> suites, std::vector<BackendEntry> backends,
                std::string_view revision = {});

/// What run_program() passes to run_cli(): this process's streams, variables, terminal and stop flag. Signals are not
/// caught yet.
[[nodiscard]] Environment process_environment(int argc, char** argv, std::span<const Suite> suites,
                                              std::vector<BackendEntry> backends, std::string_view revision = {});

/// The path of this program itself, whatever argv[0] was and wherever the working directory is by now.
[[nodiscard]] std::string own_path(const char* argv0);

}  // namespace gpubench
