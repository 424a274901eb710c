#include <fmt/format.h>

#include "harness/cli/run_context.h"
#include "harness/cli/verb.h"

namespace gpubench {
namespace {

int version_command(const Options& /*options*/, const Environment& environment) {
  environment.out << fmt::format("gpubench {}, {}\n", version(), build_text(environment));
  return exit_codes::ok;
}

}  // namespace

Verb version_verb() {
  return {.name = "version",
          .arguments = "",
          .summary = "print the version and how it was built",
          .examples = R"(  gpubench version
  gpubench --version
)",
          .act = version_command};
}

}  // namespace gpubench
