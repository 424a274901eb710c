// Implementations under test in one report (--impl, --versus): each as a side of its own, and how much faster one is
// than another by the rounds that they took in turns.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/comparison.h"
#include "harness/core/text/text_table.h"
#include "harness/report/report_json.h"

namespace gpubench {

/// What a contender is called: "reference" for the device's own libraries (Case::contender is empty).
[[nodiscard]] std::string contender_title(const std::string& contender);

/// The values of Case::contender, each once, in the order of the cases.
[[nodiscard]] std::vector<std::string> contenders_of(std::span<const CaseRecord> cases);

/// The report with the cases of one contender only.
[[nodiscard]] Report of_contender(const Report& report, const std::string& contender);

/// Two contenders of one report, as from of_contender(). They were measured in one process, round by round in turns, so
/// a round of one is paired with the round of the other in the same pass: of n pairs the mean difference of log
/// medians, its standard error s / sqrt(n), n - 1 degrees of freedom, and no less than clocks can tell (least_spread).
///
/// Faster or slower: by tau or more, with Benjamini and Hochberg's q below 0.05 over all cases (gate_rule.h);
/// the same: the 90% interval within +-tau; else unsure. What another process would add, by its layout
/// of memory say, is in no interval.
[[nodiscard]] Comparison compare_contenders(const Report& a, const Report& b, const Tau& tau = {});

/// Of a run with several contenders: each against `base` (Case::contender), a line per case with the words faster,
/// slower, same or cannot tell, and the geometric means. Empty where there is nothing to compare.
[[nodiscard]] std::string contenders_text(const Report& report, const std::string& base, const ConsoleStyle& style);

}  // namespace gpubench
