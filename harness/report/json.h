// The JSON document type of reports: keys stay in the order in which they were written, so that files read well.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace gpubench {

using Json = nlohmann::ordered_json;

/// Strict JSON: no NaN (callers write null and say why), invalid UTF-8 replaced by U+FFFD, never an exception for text.
/// `indent` -1: one line.
[[nodiscard]] inline std::string dump(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gpubench
