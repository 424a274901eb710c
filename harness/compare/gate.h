// gate: a verdict per case and one outcome from the reports of two sides.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/baseline.h"
#include "harness/compare/effect.h"
#include "harness/compare/gate_rule.h"
#include "harness/compare/invocation.h"
#include "harness/core/enum_names.h"
#include "harness/core/text/text_table.h"

namespace gpubench {

struct GateOptions {
  Tau tau{};
  bool strict = false;         ///< inconclusive cases fail
  bool allow_missing = false;  ///< cases missing in the candidate pass
  std::vector<std::string> allowed_differences;
  const Noise* noise = nullptr;
};

struct GateCase {
  std::string id;
  std::string suite;
  GateVerdict verdict = GateVerdict::inconclusive;
  Verdict candidate_verdict = Verdict::pass;  ///< the worst of its invocations; for `parity_failed`
  std::string reason;
  std::string unit;
  double baseline_rate = 0.0;  ///< headline; 0 without a pass
  double candidate_rate = 0.0;
  double baseline_ns = 0.0;
  double candidate_ns = 0.0;
  std::optional<Judgement> judgement{};  ///< for cases measured on both sides
};

enum class GateOutcome {
  passed,
  failed,
  not_comparable,  ///< set-ups differ, or an id means other work
  inconclusive     ///< nothing was concluded, or --strict and a case is inconclusive
};
template <>
inline constexpr auto enum_names<GateOutcome> = std::to_array<std::string_view>({"PASS", "FAIL", "NOT COMPARABLE",
                                                                                 "INCONCLUSIVE"});

struct GateResult {
  GateOutcome outcome = GateOutcome::inconclusive;
  std::string why;
  std::vector<Difference> refused;  ///< decisive facts that differ; then `cases` is empty
  std::vector<Difference> allowed;
  std::vector<Difference> noted;  ///< facts without an expected effect
  std::vector<std::string> warnings;
  Tau tau{};
  int baseline_runs = 0;
  int candidate_runs = 0;
  std::string noise;  ///< source of the noise, as text
  std::optional<Power> power{};
  std::vector<GateCase> cases;
  int not_run = 0;  ///< passed on neither side and failed no check

  [[nodiscard]] int count(GateVerdict verdict) const;
};

/// Both sides must not be empty. All reports and the noise file must have the set-up of the first baseline report
/// except for the allowed keys. Throws UsageError for a baseline report with an injected fault, an allowed key or suite
/// that occurs in no report, and a report given twice on one side, which would count as two runs.
[[nodiscard]] GateResult run_gate(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                                  const GateOptions& options);

/// What would settle an inconclusive case: "noise 4.9%; about 6 more runs a side would settle it".
[[nodiscard]] std::string inconclusive_text(const Judgement& judgement);

/// Set-ups, cases that fail the gate, up to 20 of each other verdict except unchanged (with `style.verbosity` of 1 all
/// cases), counts, outcome and exit code.
[[nodiscard]] std::string gate_table(const GateResult& result, int exit_code, const ConsoleStyle& style);

/// Schema "gpubench-gate".
[[nodiscard]] Json gate_json(const GateResult& result, int exit_code);

/// A testsuite per suite. Failures: regressed, failing and missing cases. Errors: crashes and cases that are not
/// comparable. Skipped: inconclusive and new cases, and missing ones if allowed.
[[nodiscard]] std::string gate_junit(const GateResult& result, const std::string& fingerprint, bool allow_missing);

/// At most `max_bytes`, worst cases first, with the number of rows left out.
[[nodiscard]] std::string gate_markdown(const GateResult& result, std::size_t max_bytes);

/// GitHub workflow commands: an ::error per case that fails the gate, at most nine and one with the number of others,
/// since GitHub shows ten of a kind per step; one if the reports are not comparable; a ::warning if the gate is
/// inconclusive.
[[nodiscard]] std::string gate_annotations(const GateResult& result, bool allow_missing);

}  // namespace gpubench
