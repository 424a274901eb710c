#include "harness/cli/verb.h"

namespace gpubench {
namespace {

std::vector<Flag> help_flags(std::span<const std::string> /*suites*/) { return subject_argument("VERB", verb_names()); }

int help_command(const Options& options, const Environment& environment) {
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
