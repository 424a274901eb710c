#include "harness/compare/gate_rule.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <numeric>
#include <stdexcept>

#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

constexpr int min_rounds = 5;
constexpr int min_samples = 5;
constexpr double bimodal_spreads = 6.0;  // exceeded by runs of one mode with probability < 1e-4 (normal data)
constexpr double clock_difference = 0.01;
constexpr double assumed_factor = 5.0;  // per 5 suites of unchanged code: 3 gives an alarm; 5 gives none in 40
constexpr int max_runs = 200;
constexpr double equivalence_tail = 0.05;  // on each side of a 90% interval
constexpr double power = 0.9;

template <class Member>
std::vector<double> values_of(std::span<const CaseRun> runs, Member member) {
  std::vector<double> values;
  for (const CaseRun& run : runs) values.push_back(member(run));
  return values;
}

bool any(const Evidence& one, bool (*holds)(const CaseRun&)) {
  return std::any_of(one.baseline.begin(), one.baseline.end(), holds) ||
         std::any_of(one.candidate.begin(), one.candidate.end(), holds);
}

bool few_samples(const CaseRun& run) { return run.rounds < min_rounds || run.samples < min_samples; }

double range_of(std::span<const CaseRun> runs) {
  const std::vector<double> y = values_of(runs, [](const CaseRun& run) { return run.log_median; });
  const auto [least, most] = std::minmax_element(y.begin(), y.end());
  return *most - *least;
}

// A case with several speeds explains differences up to the distance of its speeds.
bool bimodal(const Evidence& one, const Effect& effect) {
  const double range = std::max(range_of(one.baseline), range_of(one.candidate));
  return range > bimodal_spreads * effect.usual_spread && std::fabs(effect.delta) <= range;
}

// Whether the clocks of the sides differ, but not the number of cycles.
bool clock_explains(const Evidence& one, double delta, double tau) {
  if (any(one, [](const CaseRun& run) { return !run.sm_mhz; })) return false;
  const auto clock = [](const CaseRun& run) { return std::log(*run.sm_mhz); };
  const double shift = mean(values_of(one.candidate, clock)) - mean(values_of(one.baseline, clock));
  return std::fabs(shift) > clock_difference && std::fabs(delta + shift) < std::log1p(0.5 * tau);
}

// Whether a task waited for a processor more than half of the time on a side. Such times depend on the scheduler's time
// slices; no number of runs samples the case.
bool busy(std::span<const CaseRun> side) {
  constexpr double half_of_the_time = 0.5;
  if (std::any_of(side.begin(), side.end(), [](const CaseRun& run) { return !run.cpu_pressure; })) return false;
  return mean(values_of(side, [](const CaseRun& run) { return *run.cpu_pressure; })) > half_of_the_time;
}

std::size_t fewer_runs(const Evidence& one) { return std::min(one.baseline.size(), one.candidate.size()); }

// Rules out any firm verdict. Batches count only for a difference that they can explain.
InconclusiveReason inconclusive_reason(const Evidence& one, const Effect& effect) {
  if (any(one, few_samples)) return InconclusiveReason::few_samples;
  if (effect.source != NoiseSource::assumed && bimodal(one, effect)) return InconclusiveReason::bimodal;
  if (batches_of(one.baseline, one.candidate).differ()) return InconclusiveReason::batch;
  return InconclusiveReason::none;
}

// Rules out regressed and improved.
InconclusiveReason inconclusive_reason_of_change(const Evidence& one, const Effect& effect, double tau) {
  if (clock_explains(one, effect.delta, tau)) return InconclusiveReason::clock;
  if (busy(one.baseline) || busy(one.candidate)) return InconclusiveReason::busy;
  const bool slower = effect.delta > 0.0;
  if (slower && fewer_runs(one) < static_cast<std::size_t>(enough_runs) &&
      any(one, [](const CaseRun& run) { return run.drifting; })) {
    return InconclusiveReason::drift;
  }
  return InconclusiveReason::none;
}

// Whether `runs` runs a side would settle a case with this difference and spread: detect a relevant difference among
// `tests` cases, or exclude one.
bool settles(const Effect& effect, int runs, double prior_degrees, double tests, const GateRule& rule) {
  const auto [error, degrees] = precision_of(effect.spread, prior_degrees, runs);
  const double size = std::fabs(effect.delta);
  const double matters = std::log1p(rule.tau);
  if (size >= matters) return student_t_tail(size / error, degrees) <= rule.false_findings / tests;
  return student_t_tail((matters - size) / error, degrees) < equivalence_tail;
}

// By bisection: is_enough() is monotonic, false at `too_few`.
template <class Enough>
std::optional<int> min_runs(int too_few, Enough is_enough) {
  int enough = max_runs;
  if (!is_enough(enough)) return std::nullopt;
  while (enough - too_few > 1) {
    const int middle = (too_few + enough) / 2;
    (is_enough(middle) ? enough : too_few) = middle;
  }
  return enough;
}

double prior_degrees(const Evidence& one, const Effect& effect) {
  const double own = static_cast<double>(one.baseline.size() + one.candidate.size()) - 2.0;
  return std::max(0.0, effect.degrees - own);
}

std::optional<int> runs_to_settle(const Evidence& one, const Effect& effect, double tests, const GateRule& rule) {
  const auto have = static_cast<int>(fewer_runs(one));
  if (effect.source == NoiseSource::assumed) return std::max(1, enough_runs - have);
  const std::optional<int> enough =
      min_runs(have, [&](int runs) { return settles(effect, runs, prior_degrees(one, effect), tests, rule); });
  if (!enough) return std::nullopt;
  return std::max(1, *enough - have);
}

// Tests the cases with known noise and corrects the p-values of both directions.
void test_all(std::span<const Evidence> cases, std::vector<Judgement>& judgements) {
  std::vector<std::size_t> tested;
  std::vector<double> p_slower, p_faster;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Effect& effect = judgements[i].effect;
    if (effect.source == NoiseSource::assumed || judgements[i].doubt != InconclusiveReason::none) continue;
    tested.push_back(i);
    p_slower.push_back(student_t_tail(effect.delta / effect.error, effect.degrees));
    p_faster.push_back(student_t_tail(-effect.delta / effect.error, effect.degrees));
  }
  const std::vector<double> q_slower = false_discovery_rates(p_slower);
  const std::vector<double> q_faster = false_discovery_rates(p_faster);
  for (std::size_t t = 0; t < tested.size(); ++t) {
    judgements[tested[t]].q_slower = q_slower[t];
    judgements[tested[t]].q_faster = q_faster[t];
  }
}

// By size and significance only.
GateVerdict change_of(const Judgement& judgement, const GateRule& rule) {
  const double matters = std::log1p(rule.tau);
  const double delta = judgement.effect.delta;
  if (judgement.effect.source == NoiseSource::assumed) {
    const double needed = std::max(matters, assumed_factor * std::numbers::sqrt2 * rule.assumed_spread);
    return delta > needed    ? GateVerdict::regressed
           : -delta > needed ? GateVerdict::improved
                             : GateVerdict::inconclusive;
  }
  if (*judgement.q_slower < rule.false_findings && delta >= matters) return GateVerdict::regressed;
  if (*judgement.q_faster < rule.false_findings && -delta >= matters) return GateVerdict::improved;
  return GateVerdict::inconclusive;
}

// For sides with different batches: needs the whole interval beyond what batches explain.
GateVerdict change_beyond_batches(const Judgement& judgement) {
  const double explained = std::log(factor_of_batches);
  if (judgement.low95 > explained) return GateVerdict::regressed;
  return judgement.high95 < -explained ? GateVerdict::improved : GateVerdict::inconclusive;
}

// The 90% interval is inside +-log(1 + tau).
bool unchanged(const Effect& effect, double tau) {
  if (effect.source == NoiseSource::assumed) return false;
  return student_t_tail((std::log1p(tau) - std::fabs(effect.delta)) / effect.error, effect.degrees) < equivalence_tail;
}

class Quantiles {
 public:
  explicit Quantiles(double p) : p_(p) {}
  double at(double degrees) {
    const auto [place, fresh] = known_.try_emplace(degrees, 0.0);
    if (fresh) place->second = student_t_quantile(p_, degrees);
    return place->second;
  }

 private:
  double p_;
  std::map<double, double> known_;
};

class Sensitivity {
 public:
  Sensitivity(double tests, const GateRule& rule) : required_(1.0 - rule.false_findings / tests) {}
  double detectable(const Precision& precision, double tau) {
    const auto [error, degrees] = precision;
    const double least = std::max(std::log1p(tau), required_.at(degrees) * error);
    constexpr double most = 20.0;  // keeps reported numbers finite
    return std::expm1(std::min(most, least + beyond_.at(degrees) * error));
  }

 private:
  Quantiles required_, beyond_{power};
};

void require_tau(double tau) {
  if (!(tau > 0.0 && tau < 10.0)) throw std::invalid_argument("tau must be between 0 and 10");
}

double tests_among(std::span<const Judgement> judgements) {
  const auto tested = std::count_if(judgements.begin(), judgements.end(),
                                    [](const Judgement& one) { return one.q_slower.has_value(); });
  return std::max(1.0, static_cast<double>(tested));
}

GateRule rule_for(const Evidence& one, GateRule rule) {
  rule.tau = one.tau.value_or(rule.tau);
  return rule;
}

void settle(const Evidence& one, const GateRule& rule, double tests, Sensitivity& sensitivity, Judgement& judgement) {
  const Effect& effect = judgement.effect;
  const bool is_busy = busy(one.baseline) || busy(one.candidate);
  if (effect.source != NoiseSource::assumed && !is_busy)
    judgement.detectable = sensitivity.detectable({effect.error, effect.degrees}, rule.tau);
  const bool batches = judgement.doubt == InconclusiveReason::batch;
  if (judgement.doubt != InconclusiveReason::none && !batches) return;
  judgement.verdict = batches ? change_beyond_batches(judgement) : change_of(judgement, rule);
  if (judgement.verdict != GateVerdict::inconclusive) {
    judgement.doubt = inconclusive_reason_of_change(one, effect, rule.tau);
    if (judgement.doubt != InconclusiveReason::none) judgement.verdict = GateVerdict::inconclusive;
  } else if (batches) {
    return;
  } else if (unchanged(effect, rule.tau)) {
    judgement.verdict = GateVerdict::unchanged;
  } else if (is_busy) {
    judgement.doubt = InconclusiveReason::busy;
  } else {
    judgement.doubt =
        effect.source == NoiseSource::assumed ? InconclusiveReason::unknown_noise : InconclusiveReason::noise;
    judgement.more_runs = runs_to_settle(one, effect, tests, rule);
  }
}

}  // namespace

std::vector<double> false_discovery_rates(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return p[a] < p[b]; });
  std::vector<double> q(p.size());
  const auto tests = static_cast<double>(p.size());
  double least = 1.0;
  for (std::size_t rank = p.size(); rank > 0; --rank) {
    const std::size_t test = order[rank - 1];
    least = std::min(least, p[test] * tests / static_cast<double>(rank));
    q[test] = least;
  }
  return q;
}

std::vector<Judgement> judge_cases(std::span<const Evidence> cases, const GateRule& rule) {
  require_tau(rule.tau);
  for (const Evidence& one : cases) require_tau(one.tau.value_or(rule.tau));
  const std::vector<Effect> effects = effects_of(cases, rule.assumed_spread);
  std::vector<Judgement> judgements(cases.size());
  Quantiles two_sided(0.975);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Effect& effect = effects[i];
    const double half = two_sided.at(effect.degrees) * effect.error;
    judgements[i].effect = effect;
    judgements[i].low95 = effect.delta - half;
    judgements[i].high95 = effect.delta + half;
    judgements[i].doubt = inconclusive_reason(cases[i], effect);
  }
  test_all(cases, judgements);
  const double tests = tests_among(judgements);
  Sensitivity sensitivity(tests, rule);
  for (std::size_t i = 0; i < cases.size(); ++i)
    settle(cases[i], rule_for(cases[i], rule), tests, sensitivity, judgements[i]);
  return judgements;
}

Precision precision_of(double spread, double prior_degrees, int runs) {
  return {spread * std::sqrt(2.0 / runs), 2.0 * runs - 2.0 + prior_degrees};
}

double detectable_slowdown(const Precision& precision, double tests, const GateRule& rule) {
  return Sensitivity(tests, rule).detectable(precision, rule.tau);
}

std::optional<Power> power_of(std::span<const Evidence> cases, std::span<const Judgement> judgements,
                              const GateRule& rule) {
  Sensitivity sensitivity(tests_among(judgements), rule);
  std::vector<double> found, runs;
  for (std::size_t i = 0; i < judgements.size(); ++i) {
    if (!judgements[i].q_slower || !judgements[i].detectable) continue;
    found.push_back(*judgements[i].detectable);
    const Effect& effect = judgements[i].effect;
    const double tau = rule_for(cases[i], rule).tau;
    const auto is_enough = [&](int k) {
      return sensitivity.detectable(precision_of(effect.spread, prior_degrees(cases[i], effect), k), tau) <= 2.0 * tau;
    };
    runs.push_back(min_runs(enough_runs - 1, is_enough).value_or(2 * max_runs));
  }
  if (found.empty()) return std::nullopt;
  Power all{median(found), quantile(found, 0.9)};
  if (const double middle = std::ceil(median(runs)); middle <= max_runs)
    all.runs_for_twice_tau = static_cast<int>(middle);
  return all;
}

std::optional<CommonShift> common_shift(std::span<const Judgement> judgements) {
  constexpr std::size_t min_cases = 20;
  constexpr double min_shift = 0.01;
  constexpr double min_share = 0.7;
  if (judgements.size() < min_cases) return std::nullopt;
  std::vector<double> deltas;
  for (const Judgement& one : judgements) deltas.push_back(one.effect.delta);
  CommonShift shift{median(deltas), 0.0};
  const auto same =
      std::count_if(deltas.begin(), deltas.end(), [&](double delta) { return delta * shift.median > 0.0; });
  shift.share = static_cast<double>(same) / static_cast<double>(deltas.size());
  const bool shifted = std::fabs(shift.median) > min_shift && shift.share >= min_share;
  return shifted ? std::optional(shift) : std::nullopt;
}

}  // namespace gpubench
