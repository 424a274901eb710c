// Whether a document is what it says, by the schemas that are published in results/schema.
#pragma once

#include <string>

#include "harness/report/json_parser.h"

namespace gpubench {

/// What the schema finds wrong, one line each; empty for a valid document.
[[nodiscard]] std::string schema_errors(const Json& written, const std::string& schema_name = "report.v1.json");

}  // namespace gpubench
