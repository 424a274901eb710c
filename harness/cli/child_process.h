// Starting this program again as a child.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace gpubench {

struct ChildSetup {
  std::map<int, int> descriptors;  ///< the child's number -> ours; the others stay as they are
  bool leads_group = false;        ///< a process group of its own: Ctrl-C at the terminal does not reach it
};

/// Starts `argv` with this process's environment, no signal blocked. Killed when this process ends,
/// however it ends. Throws CannotMeasure with the system's words.
[[nodiscard]] pid_t start_child(const std::vector<std::string>& argv, const ChildSetup& setup);

}  // namespace gpubench
