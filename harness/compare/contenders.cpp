#include "harness/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/compare/gate_rule.h"
#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

constexpr double false_findings = 0.05;
constexpr double equivalence_tail = 0.05;

// log(time of b / time of a) for pairs of valid rounds.
std::vector<double> paired_differences(const CaseRecord& a, const CaseRecord& b) {
  std::vector<double> differences;
  const auto log_median = [](const CaseRecord& record, std::size_t round) {
    return log_round_medians(std::span(record.rounds).subspan(round, 1), record.batch);
  };
  for (std::size_t round = 0; round < std::min(a.rounds.size(), b.rounds.size()); ++round) {
    const std::vector<double> of_a = log_median(a, round);
    const std::vector<double> of_b = log_median(b, round);
    if (!of_a.empty() && !of_b.empty()) differences.push_back(of_b.front() - of_a.front());
  }
  return differences;
}

Effect paired_effect(const std::vector<double>& differences) {
  Effect effect;
  effect.source = NoiseSource::rounds;
  const auto pairs = static_cast<double>(differences.size());
  effect.delta = mean(differences);
  effect.spread = std::max(standard_deviation(differences), min_spread);
  effect.error = effect.spread / std::sqrt(pairs);
  effect.degrees = pairs - 1.0;
  return effect;
}

std::vector<double> corrected(const std::vector<Effect>& effects, double sign) {
  std::vector<double> p;
  for (const Effect& effect : effects) p.push_back(student_t_tail(sign * effect.delta / effect.error, effect.degrees));
  return false_discovery_rates(p);
}

Relation relation_of(const Effect& effect, double q_slower, double q_faster, double tau) {
  const double matters = std::log1p(tau);
  if (q_slower < false_findings && effect.delta >= matters) return Relation::slower;
  if (q_faster < false_findings && -effect.delta >= matters) return Relation::faster;
  const double tail = student_t_tail((matters - std::fabs(effect.delta)) / effect.error, effect.degrees);
  return tail < equivalence_tail ? Relation::same : Relation::unsure;
}

std::string failure_text(const CaseRecord& record) {
  return fmt::format("{}: {}{}{}", contender_title(record.c.contender), name(record.verdict),
                     record.reason.empty() ? "" : ": ", record.reason);
}

std::string_view word_of(Relation relation) {
  switch (relation) {
    case Relation::faster: return "faster";
    case Relation::slower: return "slower";
    case Relation::same: return "same";
    case Relation::unsure: break;
  }
  return "cannot tell";
}

}  // namespace

std::string contender_title(const std::string& contender) { return contender.empty() ? "reference" : contender; }

std::vector<std::string> contenders_of(std::span<const CaseRecord> cases) {
  std::vector<std::string> names;
  for (const CaseRecord& record : cases) {
    if (std::ranges::find(names, record.c.contender) == names.end()) names.push_back(record.c.contender);
  }
  return names;
}

Report of_contender(const Report& report, const std::string& contender) {
  Report part{report.host, report.run, {}};
  std::ranges::copy_if(report.cases, std::back_inserter(part.cases),
                       [&](const CaseRecord& record) { return record.c.contender == contender; });
  return part;
}

Comparison compare_contenders(const Report& a, const Report& b, const Tau& tau) {
  Comparison result;
  result.runs_a = result.runs_b = 1;
  result.source = NoiseSource::rounds;
  std::map<std::string, const CaseRecord*> of_b;
  for (const CaseRecord& record : b.cases) of_b[record.id] = &record;
  std::vector<Effect> effects;
  for (const CaseRecord& record : a.cases) {
    const auto found = of_b.find(record.id);
    if (found == of_b.end()) continue;
    const CaseRecord& other = *found->second;
    const std::vector<double> differences = paired_differences(record, other);
    std::string why = record.verdict != Verdict::pass ? failure_text(record) : "";
    if (other.verdict != Verdict::pass) why += (why.empty() ? "" : "; ") + failure_text(other);
    if (why.empty() && differences.size() < 2) why = "fewer than two rounds in turns";
    if (!why.empty()) {
      result.lone.push_back({record.id, why});
      continue;
    }
    effects.push_back(paired_effect(differences));
    result.cases.push_back({record.id, record.c.suite, record.derived.headline_unit, record.derived.headline,
                            other.derived.headline, record.summary.median_ns, other.summary.median_ns,
                            speed_of(effects.back())});
  }
  const std::vector<double> q_slower = corrected(effects, 1.0);
  const std::vector<double> q_faster = corrected(effects, -1.0);
  for (std::size_t i = 0; i < effects.size(); ++i)
    result.cases[i].relation = relation_of(effects[i], q_slower[i], q_faster[i], tau.of(result.cases[i].suite));
  result.suites = suite_speeds(result.cases, effects);
  return result;
}

std::string contenders_text(const Report& report, const std::string& base, const ConsoleStyle& style) {
  const Report reference = of_contender(report, base);
  const std::string title = contender_title(base);
  TextTable table({{"against " + title},
                   {""},
                   {"speed", Align::right},
                   {"95% interval"},
                   {"rate", Align::right},
                   {title, Align::right}});
  std::string means;
  for (const std::string& name : contenders_of(report.cases)) {
    if (name == base) continue;
    const Comparison comparison = compare_contenders(reference, of_contender(report, name));
    for (const ComparedCase& one : comparison.cases)
      table.add(
          {contender_title(name), std::string(word_of(one.relation)), ratio_text(one.speed.ratio),
           interval_text(one.speed), format_quantity(one.rate_b, one.unit), format_quantity(one.rate_a, one.unit)},
          tone_of(one.relation), one.id);
    for (const SuiteSpeed& suite : comparison.suites)
      means += fitted(fmt::format("{}: {} {} times the speed of {}, geometric mean of {} cases of {}",
                                  contender_title(name), ratio_text(suite.speed.ratio), interval_text(suite.speed),
                                  title, suite.cases, suite.suite),
                      style.width, 2) +
               "\n";
    for (const UnmatchedCase& lone : comparison.lone)
      means += fitted(fmt::format("{}: no ratio for {} ({})", contender_title(name), lone.id, visible(lone.why)),
                      style.width, 2) +
               "\n";
  }
  return means.empty() ? "" : "\n" + table.text(style) + "\n" + means;
}

}  // namespace gpubench
