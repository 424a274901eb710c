// Starts programs in tests and captures their output.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace gpubench {

/// A list of words, or text split at blanks.
struct Words : std::vector<std::string> {
  using std::vector<std::string>::vector;
  Words(std::vector<std::string> words) : vector(std::move(words)) {}
  Words(const std::string& line) {
    std::istringstream stream(line);
    for (std::string word; stream >> word;) push_back(word);
  }
  Words(const char* line) : Words(std::string(line)) {}

  friend Words operator+(Words first, const Words& more) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
  }
};

struct ChildResult {
  int exit_code = -1;  ///< 128 + signal after a kill
  std::string out;
  std::string err;
};

inline ChildResult exits(int code, ChildResult result, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
  const ::testing::ScopedTrace trace(file, line, "started here");
  EXPECT_EQ(result.exit_code, code) << result.out << result.err;
  return result;
}

/// Runs to the end. Adds `variables` to the environment. Calls `while_running` once with the process id when standard
/// error contains `wait_for`; at once if that is empty.
[[nodiscard]] ChildResult run_child(const Words& words, const std::map<std::string, std::string>& variables = {},
                                    const std::string& wait_for = "",
                                    const std::function<void(int)>& while_running = {});

/// With several such steps, each awaited in the output after the one before.
[[nodiscard]] ChildResult run_child_in_steps(
    const Words& words, const std::map<std::string, std::string>& variables,
    const std::vector<std::pair<std::string, std::function<void(int)>>>& steps);

}  // namespace gpubench
