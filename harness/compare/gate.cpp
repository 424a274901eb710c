#include "harness/compare/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/compare/comparison.h"
#include "harness/compare/invocation.h"
#include "harness/core/error.h"
#include "harness/core/text/text_table.h"
#include "harness/core/text/visible_text.h"

namespace gpubench {
namespace {

bool failed_check(Verdict verdict) {
  return verdict == Verdict::fail || verdict == Verdict::downgraded || verdict == Verdict::not_proven;
}

// The candidate's worst failure: any failed check, and any verdict but pass if the baseline passed.
const MeasuredCase* failure_of(const MatchedCase& one) {
  const MeasuredCase* found = nullptr;
  for (const MeasuredCase* candidate : one.candidate.cases) {
    const bool failed = failed_check(candidate->verdict) || (one.baseline.passed() && !candidate->run);
    if (failed && (found == nullptr || worse(candidate->verdict, found->verdict) == candidate->verdict))
      found = candidate;
  }
  return found;
}

enum class Standing { measured, decided, nothing };

Standing stand(const MatchedCase& one, GateCase& result) {
  if (const MeasuredCase* failure = failure_of(one); failure != nullptr) {
    result.verdict = GateVerdict::parity_failed;
    result.candidate_verdict = failure->verdict;
    result.reason = fmt::format("{}{}{}", name(failure->verdict), failure->reason.empty() ? "" : ": ", failure->reason);
    return Standing::decided;
  }
  if (one.baseline.passed() && !one.candidate.planned()) {
    result.verdict = GateVerdict::missing;
    result.reason = "in the baseline only";
    return Standing::decided;
  }
  if (!one.candidate.passed()) return Standing::nothing;
  if (!one.baseline.passed()) {
    result.verdict = GateVerdict::added;
    result.reason = one.baseline.planned() ? "did not pass in the baseline" : "in the candidate only";
    return Standing::decided;
  }
  result.reason = definition_conflict(one);
  if (result.reason.empty()) return Standing::measured;
  result.verdict = GateVerdict::not_comparable;
  return Standing::decided;
}

GateCase gate_case(const MatchedCase& one) {
  GateCase result;
  result.id = one.id;
  result.suite = one.suite;
  result.unit = one.unit;
  if (one.baseline.passed()) {
    result.baseline_rate = one.baseline.work_per_s();
    result.baseline_ns = one.baseline.median_ns();
  }
  if (one.candidate.passed()) {
    result.candidate_rate = one.candidate.work_per_s();
    result.candidate_ns = one.candidate.median_ns();
  }
  return result;
}

void judge_all(std::span<const MatchedCase> matched, const GateRule& rule, const Noise* noise, GateResult& result) {
  std::vector<Evidence> evidence;
  std::vector<std::size_t> places;
  for (const MatchedCase& one : matched) {
    GateCase of_case = gate_case(one);
    const Standing standing = stand(one, of_case);
    if (standing == Standing::nothing) {
      ++result.not_run;
      continue;
    }
    if (standing == Standing::measured) {
      places.push_back(result.cases.size());
      evidence.push_back(evidence_of(one, noise, true));
      evidence.back().tau = result.tau.of(one.suite);
    }
    result.cases.push_back(std::move(of_case));
  }
  const std::vector<Judgement> judgements = judge_cases(evidence, rule);
  result.power = power_of(evidence, judgements, rule);
  for (std::size_t i = 0; i < judgements.size(); ++i) {
    GateCase& of_case = result.cases[places[i]];
    of_case.judgement = judgements[i];
    of_case.verdict = judgements[i].verdict;
    if (of_case.verdict == GateVerdict::inconclusive) of_case.reason = inconclusive_text(judgements[i]);
  }
  if (const std::optional<CommonShift> shift = common_shift(judgements)) {
    result.warnings.push_back(
        fmt::format("the whole machine shifted: the median case is {:+.1f}% in time, {:.0f}% of cases the same way; it "
                    "is not subtracted, since a lost compiler flag looks the same",
                    100.0 * std::expm1(shift->median), 100.0 * shift->share));
  }
}

// Order: gate failures, inconclusive cases, the rest; slowest first within a verdict.
int rank(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::parity_failed: return 0;
    case GateVerdict::regressed: return 1;
    case GateVerdict::missing: return 2;
    case GateVerdict::not_comparable: return 3;
    case GateVerdict::inconclusive: return 4;
    case GateVerdict::added: return 5;
    case GateVerdict::improved: return 6;
    case GateVerdict::unchanged: return 7;
  }
  return 8;
}

void sort_cases(std::vector<GateCase>& cases) {
  std::stable_sort(cases.begin(), cases.end(), [](const GateCase& a, const GateCase& b) {
    if (a.verdict != b.verdict) return rank(a.verdict) < rank(b.verdict);
    return a.judgement && b.judgement && a.judgement->effect.delta > b.judgement->effect.delta;
  });
}

std::string noise_text(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                       const GateOptions& options, double assumed) {
  const bool repeated = std::min(baseline.size(), candidate.size()) >= static_cast<std::size_t>(enough_runs);
  if (options.noise != nullptr && (repeated || options.noise->invocations >= enough_calibration))
    return fmt::format("calibrated over {} runs ({})", options.noise->invocations, options.noise->source);
  if (baseline.size() >= static_cast<std::size_t>(enough_calibration))
    return fmt::format("from the {} baseline reports", baseline.size());
  if (repeated) return "from the reports of both sides";
  return fmt::format("not known: {:.0f}% is assumed from run to run, and only changes far beyond that are found",
                     100.0 * assumed);
}

void conclude(const GateOptions& options, GateResult& result) {
  const auto say = [&](GateOutcome outcome, std::string why) {
    result.outcome = outcome;
    result.why = std::move(why);
  };
  const int regressed = result.count(GateVerdict::regressed);
  const int failed = result.count(GateVerdict::parity_failed);
  const int missing = options.allow_missing ? 0 : result.count(GateVerdict::missing);
  const int other_work = result.count(GateVerdict::not_comparable);
  const int inconclusive = result.count(GateVerdict::inconclusive);
  const auto slower = std::ranges::count_if(result.cases, [&](const GateCase& one) {
    return one.verdict == GateVerdict::inconclusive && one.judgement &&
           one.judgement->low95 > std::log1p(result.tau.of(one.suite));
  });
  const int concluded = result.count(GateVerdict::improved) + result.count(GateVerdict::unchanged);
  if (regressed + failed + missing > 0)
    return say(GateOutcome::failed, fmt::format("{} regressed, {} failing, {} missing", regressed, failed, missing));
  if (other_work > 0) return say(GateOutcome::not_comparable, fmt::format("{} cases are different work", other_work));
  if (concluded == 0)
    return say(GateOutcome::inconclusive,
               inconclusive == 0 ? "no case was measured on both sides" : "not one case could be concluded upon");
  if (slower > 0)
    return say(GateOutcome::inconclusive,
               fmt::format("{} inconclusive with an interval above the relevant change", slower));
  if (options.strict && inconclusive > 0)
    return say(GateOutcome::inconclusive, fmt::format("{} inconclusive, and --strict", inconclusive));
  say(GateOutcome::passed, fmt::format("nothing regressed; {} concluded, {} inconclusive", concluded, inconclusive));
}

void add_all(std::vector<Difference>& to, const std::vector<Difference>& from) {
  for (const Difference& one : from) {
    const bool known = std::any_of(to.begin(), to.end(), [&](const Difference& other) {
      return other.key == one.key && other.baseline == one.baseline && other.candidate == one.candidate;
    });
    if (!known) to.push_back(one);
  }
}

using Words = std::set<std::string>;

// An unknown word would silently have no effect.
void require_known(std::string_view flag, const std::string& word, const Words& known) {
  if (known.contains(word)) return;
  const std::vector<std::string> names(known.begin(), known.end());
  throw UsageError(fmt::format("{}: no report has '{}'; they have: {}", flag, visible(word), visible(joined(names))));
}

void require_known_filters(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                           const GateOptions& options) {
  Words keys, suites;
  for (const auto side : {baseline, candidate}) {
    for (const Invocation& invocation : side) {
      for (const auto& [key, value] : invocation.setup.decisive) keys.insert(key);
      for (const MeasuredCase& one : invocation.cases) suites.insert(one.suite);
    }
  }
  for (const std::string& key : options.allowed_differences) require_known("--allow-diff", key, keys);
  for (const auto& [suite, share] : options.tau.by_suite) require_known("--tau", suite, suites);
}

void refuse_injected(std::span<const Invocation> baseline) {
  for (const Invocation& invocation : baseline) {
    if (!invocation.injected.empty())
      throw UsageError(fmt::format("--baseline: {} was measured with an injected fault, {}, and cannot be a baseline",
                                   visible(invocation.source), visible(invocation.injected)));
  }
}

void require_sound_inputs(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                          const GateOptions& options) {
  refuse_injected(baseline);
  refuse_repeats(baseline, "--baseline");
  refuse_repeats(candidate, "--candidate");
  require_known_filters(baseline, candidate, options);
}

// Sets the differences of all set-ups, the noise file's included, from that of the first baseline report.
void compare_setups(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                    const GateOptions& options, GateResult& result) {
  const Setup& first = baseline.front().setup;
  std::vector<const Setup*> others;
  for (const auto side : {baseline, candidate}) {
    for (const Invocation& invocation : side) others.push_back(&invocation.setup);
  }
  if (options.noise != nullptr) others.push_back(&options.noise->setup);
  for (const Setup* other : others) {
    for (const Difference& one : differences(first.decisive, other->decisive)) {
      const auto& allowed = options.allowed_differences;
      const bool may = std::find(allowed.begin(), allowed.end(), one.key) != allowed.end();
      add_all(may ? result.allowed : result.refused, {one});
    }
  }
  add_all(result.noted, differences(first.telling, candidate.front().setup.telling));
}

}  // namespace

int GateResult::count(GateVerdict verdict) const {
  return static_cast<int>(
      std::count_if(cases.begin(), cases.end(), [&](const GateCase& one) { return one.verdict == verdict; }));
}

std::string inconclusive_text(const Judgement& judgement) {
  const auto more = [&](const char* otherwise) {
    return judgement.more_runs ? fmt::format("about {} more run{} a side would settle it", *judgement.more_runs,
                                             *judgement.more_runs == 1 ? "" : "s")
                               : std::string(otherwise);
  };
  switch (judgement.doubt) {
    case InconclusiveReason::none: return "";
    case InconclusiveReason::noise:
      return fmt::format("noise {:.1f}% from run to run, detects {:.1f}% with 90% power; {}",
                         100.0 * judgement.effect.spread, 100.0 * judgement.detectable.value_or(0.0),
                         more("no reasonable number of runs settles it"));
    case InconclusiveReason::unknown_noise:
      return fmt::format("noise from run to run is not known; {}, or a calibration (--noise)", more("more runs"));
    case InconclusiveReason::few_samples: return "fewer than 5 valid rounds of 5 samples; run it with --preset gate";
    case InconclusiveReason::batch:
      return fmt::format("the sides have different numbers of runs per sample, which alone may make {}x",
                         factor_of_batches);
    case InconclusiveReason::bimodal: return "bimodal: runs of one side differ by more than 6 times the noise";
    case InconclusiveReason::clock: return "clock: the device ran at another clock, which explains the difference";
    case InconclusiveReason::busy:
      return "busy: other processes used the processors most of the time; use a quieter machine";
    case InconclusiveReason::drift: return "drift: it changed within a run; 3 runs a side would decide";
  }
  return "?";
}

GateResult run_gate(std::span<const Invocation> baseline, std::span<const Invocation> candidate,
                    const GateOptions& options) {
  require_sound_inputs(baseline, candidate, options);
  GateRule rule;
  rule.tau = options.tau.all;
  rule.assumed_spread = assumed_spread(baseline.front().setup, candidate.front().setup);
  GateResult result;
  result.tau = options.tau;
  result.baseline_runs = static_cast<int>(baseline.size());
  result.candidate_runs = static_cast<int>(candidate.size());
  result.noise = noise_text(baseline, candidate, options, rule.assumed_spread);
  for (const auto side : {baseline, candidate}) {
    for (const Invocation& invocation : side) {
      if (!invocation.complete)
        result.warnings.push_back(fmt::format("{} is partial: its run was interrupted", invocation.source));
      if (!invocation.injected.empty())
        result.warnings.push_back(fmt::format("{} has an injected fault: {}", invocation.source, invocation.injected));
    }
  }
  compare_setups(baseline, candidate, options, result);
  if (!result.refused.empty()) {
    result.outcome = GateOutcome::not_comparable;
    std::set<std::string> keys;
    for (const Difference& one : result.refused) keys.insert(one.key);
    result.why = fmt::format("the set-ups differ: {}", joined(std::vector<std::string>(keys.begin(), keys.end())));
    return result;
  }
  judge_all(match(baseline, candidate), rule, options.noise, result);
  sort_cases(result.cases);
  conclude(options, result);
  return result;
}

}  // namespace gpubench
