#include "harness/cli/run_context.h"
#include "harness/cli/verb.h"

namespace gpubench {
namespace {

int man_command(const Options& /*options*/, const Environment& environment) {
  environment.out << manual_page(version());
  return exit_codes::ok;
}

}  // namespace

Verb man_verb() { return {.name = "man", .act = man_command, .hidden = true}; }

}  // namespace gpubench
