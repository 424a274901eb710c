// What a report says about the machine, the build and the call.
#pragma once

#include <ctime>

#include "harness/cli/environment.h"
#include "harness/cli/options.h"
#include "harness/hardware/host.h"
#include "harness/report/report_json.h"

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

}  // namespace gpubench
