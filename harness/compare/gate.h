// gate: whether a candidate may go in. From two sides of reports to a verdict per case and one outcome.
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
  bool strict = false;                           ///< an inconclusive case is not let through
  bool allow_missing = false;                    ///< a case that the candidate lacks is
  std::vector<std::string> allowed_differences;  ///< keys of set-up facts that may differ
  const Noise* noise = nullptr;
};

struct GateCase {
  std::string id;
  std::string suite;
  GateVerdict verdict = GateVerdict::inconclusive;
  Verdict candidate_verdict = Verdict::pass;  ///< the worst of its invocations; of `parity_failed`
  std::string reason;                         ///< where the numbers alone do not give it
  std::string unit;
  double baseline_rate = 0.0;  ///< headline; 0 where it did not pass
  double candidate_rate = 0.0;
  double baseline_ns = 0.0;
  double candidate_ns = 0.0;
  std::optional<Judgement> judgement{};  ///< of cases measured on both sides
};

enum class GateOutcome {
  passed,
  failed,          ///< a regressed, failing or missing case
  not_comparable,  ///< the set-ups differ, or a case is other work
  inconclusive     ///< nothing could be concluded, or --strict and something could not
};
template <>
inline constexpr auto enum_names<GateOutcome> = std::to_array<std::string_view>({"PASS", "FAIL", "NOT COMPARABLE",
                                                                                 "INCONCLUSIVE"});

struct GateResult {
  GateOutcome outcome = GateOutcome::inconclusive;
  std::string why;                    ///< one sentence
  std::vector<Difference> refused;    ///< decisive facts that differ; then there are no cases
  std::vector<Difference> allowed;    ///< decisive facts that differ and may
  std::vector<Difference> noted;      ///< of facts that should change nothing
  std::vector<std::string> warnings;  ///< partial reports, a shift of everything
  Tau tau{};
  int baseline_runs = 0;
  int candidate_runs = 0;
  std::string noise;            ///< where the run-to-run noise comes from, in words
  std::optional<Power> power{};
  std::vector<GateCase> cases;  ///< worst first
  int not_run = 0;              ///< cases that passed on neither side and failed no check: nothing to say

  [[nodiscard]] int count(GateVerdict verdict) const;
};

/// Judges. Neither side is empty. Every report, and the noise file, must have the set-up of the first baseline report
/// except for the allowed keys. Throws UsageError where a baseline report has an injected fault, where an allowed key
/// or suite occurs in no report, and where one report is on a side twice: it would count as two runs.
[[nodiscard]] GateResult run_gate(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                                  const GateOptions& options);

/// One sentence on what an inconclusive case needs: "noise 4.9%; about 6 more runs a side would settle it".
[[nodiscard]] std::string doubt_text(const Judgement& judgement);

// The result for a terminal, a program, a CI server and a pull request.

/// Head, every case that fails the gate, up to 20 of each other verdict but unchanged (with `style.verbosity` of 1 all
/// of all), counts, outcome and exit code.
[[nodiscard]] std::string gate_table(const GateResult& result, int exit_code, const ConsoleStyle& style);

/// Everything, schema "gpubench-gate".
[[nodiscard]] Json gate_json(const GateResult& result, int exit_code);

/// JUnit XML: a testsuite per suite. Regressed, failing and missing cases are failures;
/// crashes and cases that are not comparable errors; inconclusive and new cases, and missing ones that may be, skipped.
[[nodiscard]] std::string gate_junit(const GateResult& result, const std::string& fingerprint, bool allow_missing);

/// Markdown of at most `most_bytes`, worst cases first, with a count of the rows left out.
[[nodiscard]] std::string gate_markdown(const GateResult& result, std::size_t most_bytes);

/// GitHub workflow commands: one ::error per case that fails the gate, nine at most and one that counts the others
/// (GitHub shows ten of a kind per step); one where nothing could be compared; a ::warning where nothing was concluded.
[[nodiscard]] std::string gate_annotations(const GateResult& result, bool allow_missing);

}  // namespace gpubench
