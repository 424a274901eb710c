#include "harness/cli/child_process.h"

#include <fmt/format.h>

#include <cstring>

#include "harness/cli/device.h"
#include "harness/report/visible_text.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX asks programs to declare it

namespace gpubench {

pid_t start_child(const std::vector<std::string>& argv,
                  const std::function<void(posix_spawn_file_actions_t& actions)>& redirect) {
  std::vector<std::string> held = argv;
  std::vector<char*> words;
  for (std::string& word : held) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  redirect(actions);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, words[0], &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw CannotMeasure(fmt::format("cannot start {}: {}", visible(argv.front()), std::strerror(error)));
  return pid;
}

}  // namespace gpubench
