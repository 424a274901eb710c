// Whether a document is a gpubench report, by the published schema (results/schema/report.v1.json).
#pragma once

#include <string>

#include "harness/report/json.h"

namespace gpubench {

/// What the schema finds wrong, one line each; empty for a valid report.
[[nodiscard]] std::string schema_errors(const Json& report);

}  // namespace gpubench
