// A run as Markdown: for a pull request, a wiki, a CI step's summary.
#pragma once

#include <cstddef>
#include <string>

#include "harness/report/report_json.h"

namespace gpubench {

/// What came out, on what it ran, and a row for each case, worst first, with why and its rerun line where it went
/// wrong. At most `limit_bytes`, cut between rows and saying how many are left out.
[[nodiscard]] std::string markdown_text(const Report& report, std::size_t limit_bytes);

}  // namespace gpubench
