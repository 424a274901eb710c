#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "harness/report/json_parser.h"

namespace gpubench {

/// Escapes DEL and two-byte control characters, which occur only in strings.
[[nodiscard]] inline std::string without_controls(std::string json) {
  constexpr std::string_view digits = "0123456789abcdef", looked_for = "\x7f\xc2";
  std::size_t at = json.find_first_of(looked_for);
  if (at == std::string::npos) return json;
  std::string escaped;
  std::size_t copied = 0;
  for (; at != std::string::npos; at = json.find_first_of(looked_for, at + 1)) {
    const std::size_t bytes = json[at] == '\x7f' ? 1 : 2;
    const auto c = static_cast<unsigned char>(json[std::min(at + bytes - 1, json.size() - 1)]);
    if (bytes == 2 && (c < 0x80 || c > 0x9f)) continue;
    escaped.append(json, copied, at - copied).append("\\u00").append({digits[c / 16U], digits[c % 16U]});
    copied = at + bytes;
  }
  return escaped.append(json, copied);
}

/// Strict JSON: no NaN (callers write null with a note); invalid UTF-8 becomes U+FFFD instead of an exception. Escapes
/// DEL and U+0080 to U+009F, which control terminals and need no escape in JSON. `indent` -1: one line.
[[nodiscard]] inline std::string dump(const Json& json, int indent = -1) {
  return without_controls(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace gpubench
