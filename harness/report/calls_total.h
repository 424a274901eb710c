// What all calls of a list of shapes (--shapes) take together on this device: the time that a model spends in its
// matrix products, say.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/record.h"
#include "harness/core/text/text_table.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// By suite and recipe (with modes and ranks, where they are not the usual ones), and where a recipe has several
/// suites, "all" of them. Only of what passed: where a shape did not, there is no sum. The interval is the sum of the
/// cases' 95% intervals, as if all erred the same way: the same minutes disturb them all. Empty without a list.
[[nodiscard]] std::vector<CallsTotal> calls_totals(std::span<const CaseRecord> records);

/// "38.1 ms", with a ~ where the interval is wider than a reliable timing's; or "n/a".
[[nodiscard]] std::string time_of(const CallsTotal& total);
/// "37.9 ms to 38.4 ms, 144 calls of 6 shapes", or why there is no time.
[[nodiscard]] std::string explanation_of(const CallsTotal& total);
/// "4 calls left out: primitive reorder", "12 calls taken without the bias".
[[nodiscard]] std::string text_of(const ShapesExcept& except);

/// The totals of a run, a line each, and what is not in them; empty without a list.
[[nodiscard]] std::string calls_totals_text(const Report& report, const ConsoleStyle& style);

}  // namespace gpubench
