// A child process that opens a backend and reports its DeviceInfo.
#include "harness/cli/verb.h"

namespace gpubench {
namespace {

std::vector<Flag> describe_device_flags(std::span<const std::string> /*suites*/) {
  return shared_flags({"--device", "--trust-libraries", "--worker-input", "--worker-output"});
}

int describe_device_command(const Options& options, const Environment& environment) {
  report_device(choose_device(options.device, environment), options.worker_output);
  return exit_codes::ok;
}

}  // namespace

Verb describe_device_verb() {
  return {.name = "describe-device", .flags = describe_device_flags, .act = describe_device_command, .hidden = true};
}

}  // namespace gpubench
