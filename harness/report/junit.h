// A run as JUnit's XML: each planned case is a test.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/report/report_json.h"

namespace gpubench {

/// A testsuite per suite. fail, downgraded and not_proven are failures; error is an error; unsupported, skipped and
/// unverified are skipped, with the reason. What failed tells the op, its worst element and the line that reruns it. A
/// test's time is what checking and timing it took.
[[nodiscard]] std::string junit_text(const Report& report);

/// What stands inside a <testcase>; `none`: the test passed.
enum class JUnitElement { none, failure, error, skipped };

struct JUnitCase {
  std::string suite;  ///< also the class name
  std::string name;
  double time_s = 0.0;
  JUnitElement element = JUnitElement::none;
  std::string type;          ///< of a failure or error: "regressed"
  std::string message;       ///< one line
  std::string text{};        ///< more about a failure or error, several lines
  std::string system_out{};  ///< what the test said, several lines
};

struct JUnitDocument {
  std::string name;
  std::string timestamp{};                                        ///< "2026-11-21T02:34:19" in UTC; empty: none
  std::string host_name{};                                        ///< empty: none
  bool with_times = true;                                         ///< suites tell the time of their cases together
  std::vector<std::pair<std::string, std::string>> properties{};  ///< of every suite
  std::vector<JUnitCase> cases{};                                 ///< suites appear in the order of their first case
};

/// The whole file, ending in a newline. All text may be untrusted.
[[nodiscard]] std::string junit_document_text(const JUnitDocument& document);

}  // namespace gpubench
