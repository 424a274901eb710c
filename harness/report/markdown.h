// A run as Markdown: for a pull request, a wiki, a CI step's summary.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "harness/report/report_json.h"

namespace gpubench {

/// What came out, on what it ran, and a row for each case, worst first, with why and its rerun line where it went
/// wrong. At most `limit_bytes`, cut between rows and saying how many are left out.
[[nodiscard]] std::string markdown_text(const Report& report, std::size_t limit_bytes);

/// `head`, then rows as far as they fit into `most_bytes` with it, then how many of the `count` are left out. `row`
/// makes the row of an index, with its newline. A head that is too long itself is cut between lines.
[[nodiscard]] std::string with_rows(std::string head, std::size_t count,
                                    const std::function<std::string(std::size_t)>& row, std::size_t most_bytes);

}  // namespace gpubench
