// Files that are no reports, or no longer: what every reader of reports has to refuse, with the place and the reason.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "harness/report/json.h"
#include "tests/harness/report/sample_records.h"

namespace gpubench {

struct MalformedFile {
  std::string name;   ///< what is wrong
  std::string bytes;  ///< of the file
  std::string path;   ///< where a refusal must say it is, or what its path must begin with
  std::string why;    ///< words of the reason; empty: any
};

/// Bytes that are no JSON, or more of it than is read, or no report at all.
[[nodiscard]] std::vector<MalformedFile> malformed_bytes();

/// Reports with one member of each kind of object changed to other kinds of value, made negative, or left out.
[[nodiscard]] std::vector<MalformedFile> malformed_members();

/// Reports of the right shape that contradict themselves.
[[nodiscard]] std::vector<MalformedFile> contradictory_reports();

/// Members that may be missing, as "gpubench.cases[0].choice"; all others may not.
[[nodiscard]] const std::vector<std::string>& optional_members();

/// Where that is in a document.
inline Json::json_pointer pointer_to(const std::string& path) {
  std::string pointer;
  for (const char c : "/" + path) {
    if (c != ']') pointer += c == '.' || c == '[' ? '/' : c;
  }
  return Json::json_pointer(pointer);
}

/// holding_report() with something wrong in it.
inline std::string changed_report(const std::function<void(Json&)>& change) {
  Json report = report_json(holding_report());
  change(report);
  return dump(report);
}

}  // namespace gpubench
