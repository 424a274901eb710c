// Runs the command line in the test's process and captures its output.
#pragma once

#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "harness/cli/environment.h"
#include "tests/harness/cli/child.h"
#include "tests/harness/cli/sim_environment.h"

namespace gpubench {

/// This machine without load.
inline HostInfo quiet_host() {
  HostInfo host = read_host();
  host.cpu_pressure = 0.0;
  host.load_avg = {0.0, 0.0, 0.0};
  return host;
}

/// Set by a test before run().
struct Captured {
  std::string script{};
  std::span<const Suite> suites = sim_suites();
  std::map<std::string, std::string> variables{};
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  int columns = 80;
  NvidiaDriver driver{.missing = true, .reason = "no NVIDIA driver: libcuda.so.1 cannot be loaded (test)"};
  GpuSurvey gpus{.failure = "NVML cannot be loaded from libnvidia-ml.so.1 (test)"};
  std::vector<BackendEntry> more_backends{};
  HostInfo host = quiet_host();
  std::function<std::time_t()> time_of_day = [] { return std::time(nullptr); };
  StopFlag stop{0};
  std::string revision{};
  std::istringstream in{};
  std::string program = "/nonexistent/gpubench";

  std::ostringstream out{};
  std::ostringstream err{};

  int run(Words words) {
    words.insert(words.begin(), "gpubench");
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    std::vector<BackendEntry> backends = sim_backends(script);
    backends.insert(backends.end(), more_backends.begin(), more_backends.end());
    std::vector<std::string> names;
    for (const auto& [name, value] : variables) names.push_back(name);
    const Environment environment{suites,
                                  std::move(backends),
                                  out,
                                  err,
                                  out_is_terminal,
                                  err_is_terminal,
                                  columns,
                                  [this](const char* name) {
                                    const auto found = variables.find(name);
                                    return found == variables.end() ? std::string() : found->second;
                                  },
                                  [this](double) { return driver; },
                                  program,
                                  stop,
                                  std::move(names),
                                  revision,
                                  [this](double) { return gpus; },
                                  columns,
                                  [this] { return host; },
                                  [] {},
                                  [](const BackendEntry& entry, double) { return entry.libraries(); },
                                  time_of_day,
                                  in};
    return run_cli(static_cast<int>(argv.size()), argv.data(), environment);
  }
};

inline ChildResult ran(const Words& words, Captured cli = {}) {
  const int exit_code = cli.run(words);
  return {exit_code, cli.out.str(), cli.err.str()};
}

/// The errors of a rejected command line: exit code 2, empty standard output.
inline std::string refusal_of(const Words& words, Captured cli = {}, const char* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  const ::testing::ScopedTrace trace(file, line, ::testing::PrintToString(words));
  EXPECT_EQ(cli.run(words), 2);
  EXPECT_EQ(cli.out.str(), "");
  return cli.err.str();
}

}  // namespace gpubench
