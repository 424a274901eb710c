// What the gate found, for each of its readers: a terminal, a program, a CI server, a pull request.
#pragma once

#include <cstddef>
#include <string>

#include "harness/compare/gate.h"
#include "harness/report/text_table.h"

namespace gpubench {

/// Head, every case that fails the gate, up to 20 of each other verdict but unchanged (with `style.verbosity` of 1 all
/// of all), counts, outcome and exit code.
[[nodiscard]] std::string gate_table(const GateResult& result, int exit_code, const ConsoleStyle& style);

/// Everything, schema "gpubench-gate".
[[nodiscard]] Json gate_json(const GateResult& result, int exit_code);

/// JUnit's XML as Jenkins and Ant read it: a testsuite per suite. Regressed, failing and missing cases are failures;
/// crashes and cases that are not comparable errors; inconclusive and new cases, and missing ones that may be, skipped.
[[nodiscard]] std::string gate_junit(const GateResult& result, const std::string& fingerprint, bool allow_missing);

/// Markdown of at most `most_bytes`, worst cases first, saying how many rows it leaves out.
[[nodiscard]] std::string gate_markdown(const GateResult& result, std::size_t most_bytes);

/// GitHub workflow commands: one ::error per case that fails the gate, nine at most and one that counts the others
/// (GitHub shows ten of a kind per step); one where nothing could be compared; a ::warning where nothing was concluded.
[[nodiscard]] std::string gate_annotations(const GateResult& result, bool allow_missing);

}  // namespace gpubench
