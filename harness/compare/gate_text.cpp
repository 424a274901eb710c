#include "harness/compare/gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/export.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

constexpr std::array verdicts{GateVerdict::regressed,      GateVerdict::parity_failed, GateVerdict::missing,
                              GateVerdict::not_comparable, GateVerdict::inconclusive,  GateVerdict::added,
                              GateVerdict::improved,       GateVerdict::unchanged};

std::string word_of(GateVerdict verdict) {
  std::string word(name(verdict));
  for (char& c : word) c = c == '_' ? ' ' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

Tone tone_of(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::parity_failed:
    case GateVerdict::missing:
    case GateVerdict::not_comparable:
    case GateVerdict::regressed: return Tone::bad;
    case GateVerdict::improved: return Tone::good;
    case GateVerdict::inconclusive: return Tone::doubtful;
    case GateVerdict::added:
    case GateVerdict::unchanged: return Tone::plain;
  }
  return Tone::plain;
}

Tone tone_of(GateOutcome outcome) {
  return outcome == GateOutcome::passed ? Tone::good : outcome == GateOutcome::failed ? Tone::bad : Tone::doubtful;
}

std::string percent(double log_ratio) { return fmt::format("{:+.1f}%", 100.0 * std::expm1(log_ratio)); }

std::string change_text(const GateCase& one) { return one.judgement ? percent(one.judgement->effect.delta) : "-"; }

std::string interval_text(const GateCase& one) {
  return one.judgement ? fmt::format("{} to {}", percent(one.judgement->low95), percent(one.judgement->high95)) : "-";
}

std::string rates_text(const GateCase& one) {
  const auto rate = [&](double value) { return value > 0.0 ? format_quantity(value, one.unit) : std::string("-"); };
  return fmt::format("{} -> {}", rate(one.baseline_rate), rate(one.candidate_rate));
}

std::string counts_text(const GateResult& result) {
  std::vector<std::string> counts;
  for (const GateVerdict verdict : verdicts) {
    if (const int count = result.count(verdict); count > 0)
      counts.push_back(fmt::format("{} {}", count, name(verdict)));
  }
  if (result.not_run > 0) counts.push_back(fmt::format("{} passed on neither side", result.not_run));
  return counts.empty() ? "no cases" : joined(counts);
}

// ", of collectives 10%"
std::string own_taus(const Tau& tau) {
  std::string text;
  for (const auto& [suite, share] : tau.by_suite) text += fmt::format(", of {} {:.3g}%", suite, 100.0 * share);
  return text;
}

std::string power_text(const Power& power) {
  const std::string runs = power.runs_for_twice_tau ? fmt::format("{} runs a side", *power.runs_for_twice_tau)
                                                    : std::string("more than 200 runs a side");
  return fmt::format(
      "detectable slowdown (90% power): {:.1f}% in the median case, {:.1f}% in the worst tenth; twice tau takes {}",
      100.0 * power.median, 100.0 * power.worst_tenth, runs);
}

std::vector<std::string> head_lines(const GateResult& result) {
  std::vector<std::string> lines{
      fmt::format("{} baseline and {} candidate report{}, a change of {:.3g}% matters{}", result.baseline_runs,
                  result.candidate_runs, result.candidate_runs == 1 ? "" : "s", 100.0 * result.tau.all,
                  own_taus(result.tau)),
      fmt::format("noise from run to run: {}", result.noise)};
  if (result.power) lines.push_back(power_text(*result.power));
  const auto add = [&](const char* what, const std::vector<Difference>& all) {
    for (const Difference& one : all) lines.push_back(fmt::format("{}: {}", what, difference_text(one)));
  };
  add("differs", result.refused);
  add("differs, allowed", result.allowed);
  add("noted", result.noted);
  for (const std::string& warning : result.warnings) lines.push_back("warning: " + warning);
  if (!result.refused.empty())
    lines.emplace_back(
        "another set-up gives other numbers: use gpubench compare, or --allow-diff KEY for a key that may differ");
  return lines;
}

bool fails(const GateCase& one, bool allow_missing) {
  return one.verdict == GateVerdict::regressed || one.verdict == GateVerdict::parity_failed ||
         (one.verdict == GateVerdict::missing && !allow_missing);
}

Annotation annotation_of(const GateCase& one) {
  const std::string what =
      one.verdict == GateVerdict::regressed
          ? fmt::format("{} in time, 95% interval {}; {}", change_text(one), interval_text(one), rates_text(one))
          : one.reason;
  return {AnnotationKind::error, "gpubench " + std::string(name(one.verdict)), one.id + ": " + what};
}

Json differences_json(const std::vector<Difference>& all) {
  Json json = Json::array();
  for (const Difference& one : all)
    json.push_back({{"key", one.key}, {"baseline", one.baseline}, {"candidate", one.candidate}});
  return json;
}

Json case_json(const GateCase& one) {
  Json json = {{"id", one.id},
               {"suite", one.suite},
               {"verdict", name(one.verdict)},
               {"reason", one.reason},
               {"unit", one.unit},
               {"baseline_rate", one.baseline_rate},
               {"candidate_rate", one.candidate_rate},
               {"baseline_ns", one.baseline_ns},
               {"candidate_ns", one.candidate_ns}};
  if (!one.judgement) return json;
  const Judgement& judgement = *one.judgement;
  json["doubt"] = name(judgement.doubt);
  json["slowdown"] = std::expm1(judgement.effect.delta);
  json["low95"] = std::expm1(judgement.low95);
  json["high95"] = std::expm1(judgement.high95);
  json["noise"] = judgement.effect.spread;
  if (judgement.q_slower) json["q_slower"] = *judgement.q_slower;
  if (judgement.q_faster) json["q_faster"] = *judgement.q_faster;
  if (judgement.detectable) json["detectable"] = *judgement.detectable;
  if (judgement.more_runs) json["more_runs"] = *judgement.more_runs;
  return json;
}

JUnitElement element_of(const GateCase& one, bool allow_missing) {
  switch (one.verdict) {
    case GateVerdict::regressed: return JUnitElement::failure;
    case GateVerdict::parity_failed:
      return one.candidate_verdict == Verdict::error ? JUnitElement::error : JUnitElement::failure;
    case GateVerdict::missing: return allow_missing ? JUnitElement::skipped : JUnitElement::failure;
    case GateVerdict::not_comparable: return JUnitElement::error;
    case GateVerdict::added:
    case GateVerdict::inconclusive: return JUnitElement::skipped;
    case GateVerdict::improved:
    case GateVerdict::unchanged: return JUnitElement::none;
  }
  return JUnitElement::none;
}

std::string message_of(const GateCase& one) {
  if (!one.judgement) return one.reason;
  return fmt::format("time {}, 95% interval {}{}{}", change_text(one), interval_text(one),
                     one.reason.empty() ? "" : "; ", one.reason);
}

JUnitCase test_of(const GateCase& one, bool allow_missing) {
  JUnitCase test{
      one.suite,      one.id, one.candidate_ns * 1e-9, element_of(one, allow_missing), std::string(name(one.verdict)),
      message_of(one)};
  if (test.element == JUnitElement::skipped) test.message = test.type + ": " + test.message;
  return test;
}

}  // namespace

std::string gate_table(const GateResult& result, int exit_code, const ConsoleStyle& style) {
  std::string text;
  for (const std::string& line : head_lines(result)) text += fitted(visible(line), style.width, 0) + "\n";
  TextTable table({{"verdict"}, {"time", Align::right}, {"95% interval"}, {"rate"}, {"case"}});
  std::size_t shown = 0;
  constexpr int max_of_a_kind = 20;
  std::map<GateVerdict, int> of_kind;
  std::size_t left_out = 0;
  for (const GateCase& one : result.cases) {
    const int most = one.verdict == GateVerdict::unchanged ? 0 : max_of_a_kind;
    if (!fails(one, false) && style.verbosity == 0 && ++of_kind[one.verdict] > most) {
      left_out += one.verdict == GateVerdict::unchanged ? 0 : 1;
      continue;
    }
    ++shown;
    table.add({word_of(one.verdict), change_text(one), interval_text(one), rates_text(one), one.id},
              tone_of(one.verdict), one.reason);
  }
  if (shown > 0) text += "\n" + table.text(style);
  if (left_out > 0) text += fmt::format("and {} more (-v)\n", left_out);
  const int indent = 8 + columns(name(result.outcome));  // of the text after "GATE  FAILED  "
  return text + fmt::format("\n{}\nGATE  {}  {}\nexit {}\n", fitted(counts_text(result), style.width, 0),
                            paint(name(result.outcome), tone_of(result.outcome), style),
                            fitted(visible(result.why), style.width, indent), exit_code);
}

Json gate_json(const GateResult& result, int exit_code) {
  Json power;
  if (result.power) {
    power = {{"median", result.power->median}, {"worst_tenth", result.power->worst_tenth}};
    if (result.power->runs_for_twice_tau) power["runs_for_twice_tau"] = *result.power->runs_for_twice_tau;
  }
  Json counts = Json::object();
  for (const GateVerdict verdict : verdicts) counts[std::string(name(verdict))] = result.count(verdict);
  Json cases = Json::array();
  for (const GateCase& one : result.cases) cases.push_back(case_json(one));
  return {{"schema", "gpubench-gate"},
          {"schema_version", "1.1"},
          {"outcome", name(result.outcome)},
          {"exit_code", exit_code},
          {"why", result.why},
          {"tau", result.tau.all},
          {"tau_by_suite", result.tau.by_suite},
          {"baseline_runs", result.baseline_runs},
          {"candidate_runs", result.candidate_runs},
          {"noise", result.noise},
          {"power", std::move(power)},
          {"refused", differences_json(result.refused)},
          {"allowed", differences_json(result.allowed)},
          {"noted", differences_json(result.noted)},
          {"warnings", result.warnings},
          {"counts", std::move(counts)},
          {"not_run", result.not_run},
          {"cases", std::move(cases)}};
}

std::string gate_markdown(const GateResult& result, std::size_t max_bytes) {
  std::string head = fmt::format("### gpubench gate: {}\n\n{}. {}.\n\n", markdown_cell(name(result.outcome)),
                                 markdown_cell(result.why), markdown_cell(counts_text(result)));
  for (const std::string& line : head_lines(result)) head += "- " + markdown_cell(line) + "\n";
  if (!result.cases.empty())
    head += "\n| verdict | time | 95% interval | rate | case |\n| --- | ---: | --- | --- | --- |\n";
  const auto row = [&](std::size_t i) {
    const GateCase& one = result.cases[i];
    return fmt::format("| {} | {} | {} | {} | {}{} |\n", word_of(one.verdict), change_text(one), interval_text(one),
                       markdown_cell(rates_text(one)), markdown_cell(one.id),
                       one.reason.empty() ? "" : "<br>" + markdown_cell(one.reason));
  };
  return with_rows(std::move(head), result.cases.size(), row, max_bytes);
}

std::string gate_annotations(const GateResult& result, bool allow_missing) {
  constexpr const char* title = "gpubench gate";
  std::vector<Annotation> annotations;
  if (result.outcome == GateOutcome::not_comparable && !result.refused.empty()) {
    annotations.push_back({AnnotationKind::error, title, result.why});
    return annotations_text(annotations, title);
  }
  for (const GateCase& one : result.cases) {
    if (fails(one, allow_missing)) annotations.push_back(annotation_of(one));
  }
  if (annotations.empty() && result.outcome != GateOutcome::passed)
    annotations.push_back({AnnotationKind::warning, title, result.why});
  return annotations_text(annotations, title);
}

std::string gate_junit(const GateResult& result, const std::string& fingerprint, bool allow_missing) {
  JUnitDocument document{"gpubench gate"};
  document.with_times = false;  // the times are of two builds, not of judging
  document.properties = {
      {"fingerprint", fingerprint}, {"outcome", std::string(name(result.outcome))}, {"noise", result.noise}};
  for (const GateCase& one : result.cases) document.cases.push_back(test_of(one, allow_missing));
  // A test for the outcome without cases, for readers that only count tests.
  if (result.cases.empty())
    document.cases.push_back(
        {"gate", "set-up", 0.0, JUnitElement::error, std::string(name(result.outcome)), result.why});
  return junit_document_text(document);
}

}  // namespace gpubench
