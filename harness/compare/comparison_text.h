// Comparisons for people and for programs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/compare/comparison.h"
#include "harness/report/text_table.h"

namespace gpubench {

/// What stands in the head for one side.
struct SideLabel {
  std::string letter;              ///< "A", "B", "C"
  std::vector<std::string> files;  ///< one per invocation
  std::string device;              ///< its name
};

/// A pair of sides, and what came out; several share side A.
struct LabelledComparison {
  SideLabel a;
  SideLabel b;
  Comparison comparison;
};

/// Head with the set-ups and what differs, one line per case (the most different first), a line per suite, and how many
/// cases have no ratio; which ones, with `style.verbosity` of 1.
[[nodiscard]] std::string comparison_table(const LabelledComparison& one, const ConsoleStyle& style);
/// The same as GitHub's Markdown.
[[nodiscard]] std::string comparison_markdown(const LabelledComparison& one);
/// One document for all of them: schema "gpubench-comparison".
[[nodiscard]] Json comparison_json(std::span<const LabelledComparison> all);
/// One row per pair and case.
[[nodiscard]] std::string comparison_csv(std::span<const LabelledComparison> all);

/// What the side at this place is called: "A" to "Z", then "S27".
[[nodiscard]] std::string side_letter(std::size_t side);

/// "1.23x"; three digits, more where it lies near 1.
[[nodiscard]] std::string ratio_text(double ratio);

}  // namespace gpubench
