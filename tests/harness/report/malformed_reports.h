// Invalid report files that every reader must refuse with place and reason.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/report/json.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {

struct MalformedFile {
  std::string name;
  std::string bytes;
  std::string path;  ///< the place in the error, or its prefix
  std::string why;
};

/// Not JSON, JSON beyond limits, or other documents.
[[nodiscard]] std::vector<MalformedFile> malformed_bytes();

/// One member of each kind of object with other kinds of value, negative, or missing.
[[nodiscard]] std::vector<MalformedFile> malformed_members();

/// Valid shape, contradictory content.
[[nodiscard]] std::vector<MalformedFile> contradictory_reports();

/// Members that may be missing, as "gpubench.cases[0].choice".
[[nodiscard]] const std::vector<std::string>& optional_members();

inline Json::json_pointer pointer_to(const std::string& path) {
  std::string pointer;
  for (const char c : "/" + path) {
    if (c != ']') pointer += c == '.' || c == '[' ? '/' : c;
  }
  return Json::json_pointer(pointer);
}

/// holding_report() with a change.
inline std::string changed_report(const std::function<void(Json&)>& change) {
  Json report = report_json(holding_report());
  change(report);
  return dump(report);
}

}  // namespace gpubench
