// A child process that asks the driver, NVML or the CUDA module.
#include "harness/cli/verb.h"

namespace gpubench {
namespace {

std::vector<Flag> probe_flags(std::span<const std::string> /*suites*/) {
  return together(shared_flags({"--worker-input", "--worker-output"}), subject_argument("driver|gpus|libraries"));
}

int probe_command(const Options& options, const Environment& environment) {
  probe(options.subject, options.worker_output, environment.backends);
  return exit_codes::ok;
}

}  // namespace

Verb probe_verb() { return {.name = "probe", .flags = probe_flags, .act = probe_command, .hidden = true}; }

}  // namespace gpubench
