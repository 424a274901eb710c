// Command lines in tests, programs that are started with them, and what they said.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace gpubench {

/// The words of a command line: a list, or text that is split at blanks.
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
  int exit_code = -1;  ///< 128 + signal where it was killed
  std::string out;
  std::string err;
};

/// Checks the exit code and returns the result.
inline ChildResult exits(int code, ChildResult result, const char* file = __builtin_FILE(),
                         int line = __builtin_LINE()) {
  const ::testing::ScopedTrace trace(file, line, "started here");
  EXPECT_EQ(result.exit_code, code) << result.out << result.err;
  return result;
}

/// Runs to the end. `variables` are added to this process's own; `while_running` is called once with its process id as
/// soon as it has written `wait_for` to standard error; at once where that is empty.
[[nodiscard]] ChildResult run_child(const Words& words, const std::map<std::string, std::string>& variables = {},
                                    const std::string& wait_for = "",
                                    const std::function<void(int)>& while_running = {});

/// The same with several such moments, each waited for in what is written after the one before.
[[nodiscard]] ChildResult run_child_in_steps(
    const Words& words, const std::map<std::string, std::string>& variables,
    const std::vector<std::pair<std::string, std::function<void(int)>>>& steps);

}  // namespace gpubench
