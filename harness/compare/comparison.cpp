#include "harness/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "harness/core/text/quantity.h"
#include "harness/core/text/text_table.h"
#include "harness/measure/statistics.h"
#include "harness/report/console.h"

namespace gpubench {
namespace {

// `delta`: log of B's time over A's; speed is the inverse.
Speed speed_of(double delta, double error, double degrees) {
  const double half = student_t_quantile(0.975, degrees) * error;
  return {std::exp(-delta), std::exp(-delta - half), std::exp(-delta + half)};
}

/// `batches`: the batches of the sides differ.
Relation relation_of(const Speed& speed, double tau, bool batches) {
  if (batches && speed.low <= factor_of_batches && speed.high >= 1.0 / factor_of_batches) return Relation::unsure;
  const double edge = std::log1p(tau);
  if (std::log(speed.high) < edge && std::log(speed.low) > -edge) return Relation::same;
  if (speed.low > 1.0) return Relation::faster;
  if (speed.high < 1.0) return Relation::slower;
  return Relation::unsure;
}

std::string batch_note(const MatchedCase& one) {
  const Batches batches = batches_of(one.baseline.runs, one.candidate.runs);
  return batches.differ() ? fmt::format("samples of {} and of {} runs", batches.least, batches.most) : "";
}

std::string unmatched_reason(const MatchedCase& one) {
  if (!one.candidate.planned()) return "only in A";
  if (!one.baseline.planned()) return "only in B";
  const auto state = [](const char* side, const CaseOfSide& of_side) -> std::string {
    const MeasuredCase* bad = of_side.unpassed();
    if (of_side.passed() || bad == nullptr) return "";
    return fmt::format("{}: {}{}{}", side, name(bad->verdict), bad->reason.empty() ? "" : ": ", bad->reason);
  };
  std::vector<std::string> states;
  for (std::string text : {state("A", one.baseline), state("B", one.candidate)}) {
    if (!text.empty()) states.push_back(std::move(text));
  }
  return joined(states, "; ");
}

ComparedCase compared(const MatchedCase& one, const Effect& effect, double tau) {
  ComparedCase result;
  result.id = one.id;
  result.suite = one.suite;
  result.unit = one.unit;
  result.rate_a = one.baseline.work_per_s();
  result.rate_b = one.candidate.work_per_s();
  result.median_a_ns = one.baseline.median_ns();
  result.median_b_ns = one.candidate.median_ns();
  result.speed = speed_of(effect);
  result.note = batch_note(one);
  result.relation = relation_of(result.speed, tau, !result.note.empty());
  return result;
}

SuiteSpeed suite_speed(const std::string& suite, const std::vector<Effect>& effects) {
  const auto cases = static_cast<double>(effects.size());
  double delta = 0.0;
  double variance = 0.0;
  double degrees = effects.front().degrees;
  for (const Effect& effect : effects) {
    delta += effect.delta / cases;
    variance += effect.error * effect.error / cases;
    degrees = std::min(degrees, effect.degrees);
  }
  const double error = std::sqrt(variance * (0.5 + 0.5 / cases));
  return {suite, static_cast<int>(effects.size()), speed_of(delta, error, degrees)};
}

}  // namespace

Speed speed_of(const Effect& effect) { return speed_of(effect.delta, effect.error, effect.degrees); }

std::vector<SuiteSpeed> suite_speeds(const std::vector<ComparedCase>& cases, const std::vector<Effect>& effects) {
  std::vector<SuiteSpeed> speeds;
  for (const auto& [suite, compared] : grouped(cases, [](const ComparedCase& one) { return one.suite; })) {
    std::vector<Effect> of_suite;
    for (const ComparedCase* one : compared) {
      if (one->note.empty()) of_suite.push_back(effects[static_cast<std::size_t>(one - cases.data())]);
    }
    if (!of_suite.empty()) speeds.push_back(suite_speed(suite, of_suite));
  }
  return speeds;
}

Evidence evidence_of(const MatchedCase& one, const Noise* noise, bool one_setup) {
  Evidence evidence{one.baseline.runs, one.candidate.runs};
  if (noise != nullptr) evidence.prior = prior_of(*noise, one.id);
  if (!evidence.prior && one_setup && one.baseline.runs.size() >= static_cast<std::size_t>(enough_calibration)) {
    std::vector<double> values;
    for (const CaseRun& run : one.baseline.runs) values.push_back(run.log_median);
    const double spread = standard_deviation(values);
    evidence.prior = Prior{spread * spread, static_cast<int>(values.size()), true};
  }
  return evidence;
}

Comparison compare(std::span<const Invocation> a, std::span<const Invocation> b, const CompareRule& rule) {
  Comparison result;
  result.decisive = differences(a.front().setup.decisive, b.front().setup.decisive);
  result.telling = differences(a.front().setup.telling, b.front().setup.telling);
  result.runs_a = static_cast<int>(a.size());
  result.runs_b = static_cast<int>(b.size());
  result.assumed_spread = assumed_spread(a.front().setup, b.front().setup);
  const std::vector<MatchedCase> matched = match(a, b);
  std::vector<Evidence> evidence;
  std::vector<const MatchedCase*> both;
  for (const MatchedCase& one : matched) {
    const std::string conflict = one.both_passed() ? definition_conflict(one) : unmatched_reason(one);
    if (!conflict.empty()) {
      result.lone.push_back({one.id, conflict});
      continue;
    }
    both.push_back(&one);
    evidence.push_back(evidence_of(one, rule.noise, result.decisive.empty()));
  }
  const std::vector<Effect> effects = effects_of(evidence, result.assumed_spread);
  result.source = NoiseSource::calibration;
  for (std::size_t i = 0; i < both.size(); ++i) {
    result.cases.push_back(compared(*both[i], effects[i], rule.tau.of(both[i]->suite)));
    result.source = std::max(result.source, effects[i].source);
  }
  result.suites = suite_speeds(result.cases, effects);
  return result;
}

namespace {

// Files round FLOP counts to fp64.
bool same_count(double a, double b) { return a == b || std::fabs(a - b) <= 1e-12 * std::fabs(a); }

std::string conflict_of(const MeasuredCase& a, const MeasuredCase& b) {
  // Equal hashes mean one definition, whatever was moved: a backend that fuses ops moves fewer bytes.
  const bool both_known = !a.def_hash.empty() && !b.def_hash.empty();
  if (both_known && a.def_hash == b.def_hash) return "";
  if (!same_count(a.flop, b.flop))
    return fmt::format("{} on one side, {} on the other: another definition", format_quantity(a.flop, "FLOP"),
                       format_quantity(b.flop, "FLOP"));
  if (both_known)
    return fmt::format("def_hash {} on one side, {} on the other: another definition", a.def_hash, b.def_hash);
  if (!same_count(a.bytes, b.bytes))
    return fmt::format("{} on one side, {} on the other: another definition", format_quantity(a.bytes, "B"),
                       format_quantity(b.bytes, "B"));
  if (a.unit != b.unit) return fmt::format("rates in {} on one side, in {} on the other", a.unit, b.unit);
  return "";
}

}  // namespace

const MeasuredCase* CaseOfSide::unpassed() const {
  for (const MeasuredCase* one : cases) {
    if (!one->run) return one;
  }
  return nullptr;
}

double CaseOfSide::median_ns() const {
  double sum = 0.0;
  for (const CaseRun& run : runs) sum += run.log_median;
  return std::exp(sum / static_cast<double>(runs.size()));
}

double CaseOfSide::work_per_s() const {
  double sum = 0.0;
  for (const MeasuredCase* one : cases) {
    if (one->run) sum += std::log(one->work_per_s);
  }
  return std::exp(sum / static_cast<double>(runs.size()));
}

std::vector<MatchedCase> match(std::span<const Invocation> baseline, std::span<const Invocation> candidate) {
  std::vector<MatchedCase> matched;
  std::unordered_map<std::string_view, std::size_t> places;
  const auto add = [&](std::span<const Invocation> side, CaseOfSide MatchedCase::*member) {
    for (const Invocation& invocation : side) {
      for (const MeasuredCase& one : invocation.cases) {
        const auto [place, fresh] = places.try_emplace(one.id, matched.size());
        if (fresh) matched.push_back({one.id, one.suite, one.unit, {}, {}});
        CaseOfSide& of_side = matched[place->second].*member;
        of_side.cases.push_back(&one);
        if (one.run) of_side.runs.push_back(*one.run);
      }
    }
  };
  add(baseline, &MatchedCase::baseline);
  add(candidate, &MatchedCase::candidate);
  return matched;
}

std::string definition_conflict(const MatchedCase& one) {
  const MeasuredCase* first = nullptr;
  for (const CaseOfSide* side : {&one.baseline, &one.candidate}) {
    for (const MeasuredCase* other : side->cases) {
      if (!other->run) continue;  // only cases that ran have counts
      if (first == nullptr) first = other;
      if (std::string conflict = conflict_of(*first, *other); !conflict.empty()) return conflict;
    }
  }
  return "";
}

}  // namespace gpubench
