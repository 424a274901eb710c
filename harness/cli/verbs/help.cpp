#include "harness/cli/help.h"
#include "harness/cli/shared_flags.h"
#include "harness/cli/terminal.h"
#include "harness/cli/verb.h"

namespace gpubench {
namespace {

std::vector<std::string> verb_words() {
  std::vector<std::string> words;
  for (const Verb& verb : verbs()) {
    if (!verb.hidden) words.emplace_back(verb.name);
  }
  return words;
}

std::vector<Flag> help_flags(std::span<const std::string> /*suites*/) { return subject_argument("VERB", verb_words()); }

int help_command(const Options& options, std::span<const std::string> /*words*/, const Environment& environment) {
  environment.out << (options.of<HelpOptions>().all ? full_help_text : help_text)(options.subject,
                                                                                  columns_of(Stream::out, environment));
  return exit_codes::ok;
}

}  // namespace

Verb help_verb() {
  return {.name = "help",
          .arguments = "[VERB]",
          .summary = "show the help of a verb",
          .examples = R"(  gpubench help run
  gpubench gate --help
)",
          .flags = help_flags,
          .act = help_command,
          .options = HelpOptions{}};
}

}  // namespace gpubench
