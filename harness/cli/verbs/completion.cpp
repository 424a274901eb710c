#include "harness/cli/verb.h"

namespace gpubench {
namespace {

struct CompletionOptions {
  std::optional<Shell> shell{};
};

void check_completion(Options& options) {
  if (!options.of<CompletionOptions>().shell) throw UsageError("completion needs a shell: bash, zsh or fish");
}

std::vector<Flag> completion_flags(std::span<const std::string> /*suites*/) {
  return under("", row("subject", "bash|zsh|fish", "", choice<Shell>(own(&CompletionOptions::shell))));
}

int completion_command(const Options& options, const Environment& environment) {
  environment.out << completion_text(*options.of<CompletionOptions>().shell, suite_names(environment.suites));
  return exit_codes::ok;
}

}  // namespace

Verb completion_verb() {
  return {.name = "completion",
          .arguments = "bash|zsh|fish",
          .summary = "print a completion script for a shell",
          .examples =
              R"(  gpubench completion bash > ~/.local/share/bash-completion/completions/gpubench
  gpubench completion fish > ~/.config/fish/completions/gpubench.fish
)",
          .flags = completion_flags,
          .act = completion_command,
          .options = CompletionOptions{},
          .check = check_completion};
}

}  // namespace gpubench
