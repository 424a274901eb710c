// gate: whether a candidate may go in. Two sides of reports to one verdict per case and one outcome.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/compare/effect.h"
#include "harness/compare/gate_rule.h"
#include "harness/compare/invocation.h"
#include "harness/compare/noise.h"

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
  std::string reason;                         ///< in words, where the numbers alone do not say it
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
[[nodiscard]] std::string_view name(GateOutcome outcome);

struct GateResult {
  GateOutcome outcome = GateOutcome::inconclusive;
  std::string why;                    ///< one sentence
  std::vector<Difference> refused;    ///< decisive facts that differ; then there are no cases
  std::vector<Difference> allowed;    ///< decisive facts that differ and may
  std::vector<Difference> noted;      ///< of facts that change nothing by rights
  std::vector<std::string> warnings;  ///< partial reports, a shift of everything
  Tau tau{};
  int baseline_runs = 0;
  int candidate_runs = 0;
  std::string noise;            ///< where the run-to-run noise comes from, in words
  std::vector<GateCase> cases;  ///< worst first
  int not_run = 0;              ///< cases that passed on neither side and failed no check: nothing to say

  [[nodiscard]] int count(GateVerdict verdict) const;
};

/// Judges. Neither side is empty. Every report, and the noise file, must have the set-up of the first baseline report
/// but for the allowed keys. Throws UsageError where a baseline report has an injected slowdown, where an allowed key
/// is no fact of any report, or where one report stands twice on a side: it would count as two runs.
[[nodiscard]] GateResult run_gate(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                                  const GateOptions& options);

/// One sentence on what an inconclusive case needs: "noise 4.9%; about 6 more runs a side would settle it".
[[nodiscard]] std::string doubt_text(const Judgement& judgement);

}  // namespace gpubench
