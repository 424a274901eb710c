#include "harness/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/json.h"

namespace gpubench {
namespace {

constexpr std::size_t max_files_named = 4;

std::string files_text(const std::vector<std::string>& files) {
  const std::vector<std::string> first(files.begin(), files.begin() + std::min(files.size(), max_files_named));
  return joined(first) +
         (files.size() > max_files_named ? fmt::format(" and {} more", files.size() - first.size()) : "");
}

std::string side_text(const SideLabel& side) {
  return fmt::format("{} = {}: {} report{}, {}", side.letter, side.device, side.files.size(),
                     side.files.size() == 1 ? "" : "s", files_text(side.files));
}

std::string noise_line(const Comparison& comparison) {
  switch (comparison.source) {
    case NoiseSource::calibration: return "noise from run to run: calibrated";
    case NoiseSource::sides: return "noise from run to run: from the reports of both sides";
    case NoiseSource::rounds: return "noise: from round to round, taken in turns in one run";
    case NoiseSource::assumed: break;
  }
  return fmt::format("noise from run to run: {:.0f}% is assumed; 3 reports a side (--a, --b) or --noise measure it",
                     100.0 * comparison.assumed_spread);
}

std::vector<const ComparedCase*> by_difference(const Comparison& comparison) {
  std::vector<const ComparedCase*> order;
  for (const ComparedCase& one : comparison.cases) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(), [](const ComparedCase* x, const ComparedCase* y) {
    return std::fabs(std::log(x->speed.ratio)) > std::fabs(std::log(y->speed.ratio));
  });
  return order;
}

std::vector<std::string> head_lines(const LabelledComparison& one) {
  std::vector<std::string> lines{side_text(one.a), side_text(one.b)};
  const Comparison& comparison = one.comparison;
  if (!comparison.decisive.empty())
    lines.push_back("differ: " + differences_text(comparison.decisive) +
                    "; this compares set-ups, not one change alone");
  if (!comparison.telling.empty()) lines.push_back("also differ: " + differences_text(comparison.telling));
  lines.push_back(noise_line(comparison));
  return lines;
}

Json side_json(const SideLabel& side) {
  return {{"letter", side.letter}, {"device", side.device}, {"files", side.files}};
}

Json speed_json(const Speed& speed) { return {{"ratio", speed.ratio}, {"low95", speed.low}, {"high95", speed.high}}; }

Json sides_that_differ(const std::vector<Difference>& all) {
  Json json = Json::array();
  for (const Difference& one : all) json.push_back({{"key", one.key}, {"a", one.baseline}, {"b", one.candidate}});
  return json;
}

}  // namespace

Tone tone_of(Relation relation) {
  switch (relation) {
    case Relation::faster: return Tone::good;
    case Relation::slower: return Tone::bad;
    case Relation::same: return Tone::plain;
    case Relation::unsure: return Tone::doubtful;
  }
  return Tone::plain;
}

std::string side_letter(std::size_t side) {
  return side < 26 ? std::string(1, static_cast<char>('A' + side)) : fmt::format("S{}", side + 1);
}

std::string ratio_text(double ratio) {
  if (ratio < 0.00995) return fmt::format("{:.3g}x", ratio);
  if (ratio >= 99.95) return fmt::format("{:.0f}x", ratio);
  return ratio >= 9.995 ? fmt::format("{:.1f}x", ratio) : fmt::format("{:.3f}x", ratio);
}

std::string interval_text(const Speed& speed) {
  return fmt::format("[{}, {}]", ratio_text(speed.low), ratio_text(speed.high));
}

std::string comparison_table(const LabelledComparison& one, const ConsoleStyle& style) {
  const std::string& a = one.a.letter;
  const std::string& b = one.b.letter;
  std::string text;
  for (const std::string& line : head_lines(one)) text += fitted(visible(line), style.width, 0) + "\n";
  TextTable table(
      {{"verdict"}, {b + "/" + a, Align::right}, {"95% interval"}, {a, Align::right}, {b, Align::right}, {"case"}});
  for (const ComparedCase* of_case : by_difference(one.comparison)) {
    table.add({std::string(name(of_case->relation)), ratio_text(of_case->speed.ratio), interval_text(of_case->speed),
               format_quantity(of_case->rate_a, of_case->unit), format_quantity(of_case->rate_b, of_case->unit),
               of_case->id + (of_case->note.empty() ? "" : "  [" + of_case->note + "]")},
              tone_of(of_case->relation));
  }
  text += "\n" + table.text(style);
  TextTable suites({{"suite"}, {"cases", Align::right}, {"geomean " + b + "/" + a, Align::right}, {"95% interval"}});
  for (const SuiteSpeed& suite : one.comparison.suites)
    suites.add(
        {suite.suite, fmt::format("{}", suite.cases), ratio_text(suite.speed.ratio), interval_text(suite.speed)});
  if (!one.comparison.suites.empty()) text += "\n" + suites.text(style);
  if (one.comparison.lone.empty()) return text;
  text += fmt::format("\n{} without a ratio:\n", one.comparison.lone.size());
  constexpr std::size_t max_lone = 10;
  const std::size_t shown =
      style.verbosity > 0 ? one.comparison.lone.size() : std::min(max_lone, one.comparison.lone.size());
  for (std::size_t i = 0; i < shown; ++i)
    text += "  " +
            fitted(fmt::format("{}  ({})", visible(one.comparison.lone[i].id), visible(one.comparison.lone[i].why)),
                   style.width, 4) +
            "\n";
  if (shown < one.comparison.lone.size())
    text += fmt::format("  and {} more (-v)\n", one.comparison.lone.size() - shown);
  return text;
}

std::string comparison_markdown(const LabelledComparison& one) {
  std::string text;
  for (const std::string& line : head_lines(one)) text += "- " + markdown_cell(line) + "\n";
  text += fmt::format(
      "\n| verdict | {1}/{0} | 95% interval | {0} | {1} | case |\n| --- | ---: | --- | ---: | ---: | --- |\n",
      one.a.letter, one.b.letter);
  for (const ComparedCase* of_case : by_difference(one.comparison)) {
    text += fmt::format("| {} | {} | {} to {} | {} | {} | {}{} |\n", name(of_case->relation),
                        ratio_text(of_case->speed.ratio), ratio_text(of_case->speed.low),
                        ratio_text(of_case->speed.high), markdown_cell(format_quantity(of_case->rate_a, of_case->unit)),
                        markdown_cell(format_quantity(of_case->rate_b, of_case->unit)), markdown_cell(of_case->id),
                        of_case->note.empty() ? "" : " (" + markdown_cell(of_case->note) + ")");
  }
  if (!one.comparison.suites.empty())
    text += fmt::format("\n| suite | cases | geomean {1}/{0} | 95% interval |\n| --- | ---: | ---: | --- |\n",
                        one.a.letter, one.b.letter);
  for (const SuiteSpeed& suite : one.comparison.suites) {
    text += fmt::format("| {} | {} | {} | {} to {} |\n", markdown_cell(suite.suite), suite.cases,
                        ratio_text(suite.speed.ratio), ratio_text(suite.speed.low), ratio_text(suite.speed.high));
  }
  if (!one.comparison.lone.empty()) text += "\nWithout a ratio:\n\n";
  for (const UnmatchedCase& lone : one.comparison.lone)
    text += fmt::format("- {} ({})\n", markdown_cell(lone.id), markdown_cell(lone.why));
  return text;
}

Json comparison_json(std::span<const LabelledComparison> all) {
  Json comparisons = Json::array();
  for (const LabelledComparison& one : all) {
    Json cases = Json::array();
    for (const ComparedCase& of_case : one.comparison.cases) {
      cases.push_back({{"id", of_case.id},
                       {"suite", of_case.suite},
                       {"verdict", name(of_case.relation)},
                       {"speed", speed_json(of_case.speed)},
                       {"rate_a", of_case.rate_a},
                       {"rate_b", of_case.rate_b},
                       {"unit", of_case.unit},
                       {"median_a_ns", of_case.median_a_ns},
                       {"median_b_ns", of_case.median_b_ns},
                       {"note", of_case.note}});
    }
    Json suites = Json::array();
    for (const SuiteSpeed& suite : one.comparison.suites)
      suites.push_back({{"suite", suite.suite}, {"cases", suite.cases}, {"geomean", speed_json(suite.speed)}});
    Json lone = Json::array();
    for (const UnmatchedCase& of_case : one.comparison.lone) lone.push_back({{"id", of_case.id}, {"why", of_case.why}});
    comparisons.push_back({{"a", side_json(one.a)},
                           {"b", side_json(one.b)},
                           {"differences", sides_that_differ(one.comparison.decisive)},
                           {"notes", sides_that_differ(one.comparison.telling)},
                           {"noise", noise_line(one.comparison)},
                           {"cases", std::move(cases)},
                           {"suites", std::move(suites)},
                           {"without_ratio", std::move(lone)}});
  }
  return {{"schema", "gpubench-comparison"}, {"schema_version", "1.0"}, {"comparisons", std::move(comparisons)}};
}

std::string comparison_csv(std::span<const LabelledComparison> all) {
  std::string text = "a,b,suite,case,verdict,speed,low95,high95,rate_a,rate_b,unit,median_a_ns,median_b_ns,note\n";
  for (const LabelledComparison& one : all) {
    for (const ComparedCase& of_case : one.comparison.cases) {
      text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_cell(joined(one.a.files, " ")),
                          csv_cell(joined(one.b.files, " ")), csv_cell(of_case.suite), csv_cell(of_case.id),
                          name(of_case.relation), of_case.speed.ratio, of_case.speed.low, of_case.speed.high,
                          of_case.rate_a, of_case.rate_b, csv_cell(of_case.unit), of_case.median_a_ns,
                          of_case.median_b_ns, csv_cell(of_case.note));
    }
  }
  return text;
}

}  // namespace gpubench
