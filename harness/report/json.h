// The JSON document type of reports.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "harness/report/json_fwd.h"

namespace gpubench {

/// Strict JSON: no NaN (callers write null and say why), invalid UTF-8 replaced by U+FFFD, never an exception for text.
/// `indent` -1: one line.
[[nodiscard]] inline std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gpubench
