#include "harness/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/compare/comparison_text.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

constexpr std::size_t most_rows = 16;  // of a chart; the table has them all

std::string interval_text(const Speed& speed) {
  return fmt::format("{} to {}", ratio_text(speed.low), ratio_text(speed.high));
}

double distance(const ComparedCase& one) { return std::fabs(std::log(one.speed.ratio)); }

std::string without_suite(const std::string& id, const std::string& suite) {
  return id.starts_with(suite + "/") ? id.substr(suite.size() + 1) : id;
}

// Nearly all cases have one rank; where there are more, the id says so.
std::string one_rank(const std::string& id) { return id.ends_with("/x1") ? id.substr(0, id.size() - 3) : id; }

chart::ForestRow mean_row(const SuiteSpeed& suite) {
  return {fmt::format("geometric mean of {}", counted(static_cast<std::size_t>(suite.cases), "case")),
          suite.speed.ratio,
          suite.speed.low,
          suite.speed.high,
          "",
          true};
}

Figure figure_of(const Comparison& comparison, const SuiteSpeed& suite, const Side& a, const Side& b) {
  std::vector<const ComparedCase*> cases;
  for (const ComparedCase& one : comparison.cases) {
    if (one.suite == suite.suite) cases.push_back(&one);
  }
  std::stable_sort(cases.begin(), cases.end(),
                   [](const ComparedCase* x, const ComparedCase* y) { return distance(*x) > distance(*y); });
  chart::ForestChart chart;
  chart.title = cases.size() > most_rows
                    ? fmt::format("{}: the {} most different of {}", suite.suite, most_rows, cases.size())
                    : suite.suite;
  chart.axis_title = fmt::format("speed of {} as a multiple of {}", b.called(), a.called());
  chart.rows.push_back(mean_row(suite));
  DataTable table;
  table.title = counted(cases.size(), "case");
  table.columns = {{"verdict"},
                   {b.letter + "/" + a.letter, true},
                   {"95% interval"},
                   {a.letter, true, cases.front()->unit},
                   {b.letter, true, cases.front()->unit},
                   {"case"}};
  for (const ComparedCase* one : cases) {
    const std::string id = without_suite(one->id, suite.suite);
    if (chart.rows.size() <= most_rows)
      chart.rows.push_back(
          {one_rank(id), one->speed.ratio, one->speed.low, one->speed.high, std::string(name(one->relation)), false});
    table.rows.push_back({std::string(name(one->relation)), ratio_text(one->speed.ratio), interval_text(one->speed),
                          format_quantity(one->rate_a, one->unit), format_quantity(one->rate_b, one->unit),
                          one->note.empty() ? id : id + " (" + one->note + ")"});
  }
  chart.description =
      fmt::format("Ratios of speed with 95% intervals, {} of {} against {}; the diamond is their geometric mean, {}.",
                  counted(cases.size(), "case"), b.name, a.name, ratio_text(suite.speed.ratio));
  return {slug(suite.suite + " " + b.letter), std::move(chart), std::move(table)};
}

std::string noise_text(const Comparison& comparison) {
  return comparison.source == NoiseSource::assumed
             ? fmt::format("With one report a side, {:.0f}% noise from run to run is assumed.",
                           100.0 * comparison.assumed_spread)
             : "";
}

}  // namespace

void add_comparison(Section& section, const Material& material) {
  section.notice = material.comparisons.refusal;
  if (material.comparisons.pairs.empty()) section.lead.clear();
  std::vector<std::string> notes;
  for (const SideComparison& pair : material.comparisons.pairs) {
    FigureGroup group{fmt::format("{} against {}", pair.b->name, pair.a->name), {}};
    for (const SuiteSpeed& suite : pair.comparison.suites)
      group.figures.push_back(figure_of(pair.comparison, suite, *pair.a, *pair.b));
    const std::string noise = noise_text(pair.comparison);
    if (!noise.empty() && std::find(notes.begin(), notes.end(), noise) == notes.end()) notes.push_back(noise);
    if (group.figures.empty())
      section.notice = fmt::format("No case passed in both {} and {}.", pair.a->name, pair.b->name);
    section.groups.push_back(std::move(group));
  }
  for (const std::string& note : notes) section.lead += " " + note;
}

}  // namespace gpubench::page
