// Starting this program again as a child.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

namespace gpubench {

/// Starts `argv` with this process's environment; `redirect` says what becomes of its descriptors. Throws CannotMeasure
/// with the system's words.
[[nodiscard]] pid_t start_child(const std::vector<std::string>& argv,
                                const std::function<void(posix_spawn_file_actions_t& actions)>& redirect);

}  // namespace gpubench
