// Validates documents against the schemas in results/schema.
#pragma once

#include <string>

#include "harness/report/json_parser.h"

namespace gpubench {

/// One line per error; empty if valid.
[[nodiscard]] std::string schema_errors(const Json& written, const std::string& schema_name = "report.v1.json");

}  // namespace gpubench
