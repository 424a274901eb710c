// Starting a program in a test and keeping what it said.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gpubench {

struct ChildResult {
  int exit_code = -1;  ///< 128 + signal where it was killed
  std::string out;
  std::string err;
};

/// Runs to the end. `variables` are added to this process's own; `while_running` is called once with its process id as
/// soon as it has written `wait_for` to standard error; at once where that is empty.
[[nodiscard]] ChildResult run_child(const std::vector<std::string>& words,
                                    const std::map<std::string, std::string>& variables = {},
                                    const std::string& wait_for = "",
                                    const std::function<void(int)>& while_running = {});

/// The same with several such moments, each waited for in what is written after the one before.
[[nodiscard]] ChildResult run_child_in_steps(
    const std::vector<std::string>& words, const std::map<std::string, std::string>& variables,
    const std::vector<std::pair<std::string, std::function<void(int)>>>& steps);

}  // namespace gpubench
