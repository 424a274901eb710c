// What surrounds a run: what its flags and the machine give it (pins, remembered choices, sensors, ranks), and what a
// report says about machine, build and call.
#pragma once

#include <ctime>

#include "harness/cli/device.h"
#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/hardware/host.h"
#include "harness/report/report_json.h"
#include "harness/run/run.h"

namespace gpubench {

/// "0.1.0"
[[nodiscard]] std::string_view version();
/// "revision" -> "30d45bb0a1b2" (absent where unknown), "compiler" -> "g++ 12.2.0", "type" -> "Release", ...
[[nodiscard]] std::vector<std::pair<std::string, std::string>> build_facts(const Environment& environment);

[[nodiscard]] HostContext host_context(const HostInfo& host, const std::string& executable);

/// Of the variables that change numbers, those that are set. The rest of the environment is nobody's business.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> telling_variables(const Environment& environment);

/// 16 hexadecimal digits for the report of this run, which started then; no two runs of a machine have the same.
[[nodiscard]] std::string invocation_id(std::time_t started);

/// The flags' RunOptions with what the surroundings add.
/// Throws UsageError where --pin names no report that holds.
[[nodiscard]] RunOptions run_options(const Options& options, Tier tier, const Environment& environment,
                                     const DeviceChoice& device);

}  // namespace gpubench
