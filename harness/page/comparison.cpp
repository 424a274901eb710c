#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/compare/comparison.h"
#include "harness/core/text/quantity.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

std::string interval_of(const Speed& speed) {
  return fmt::format("{} to {}", ratio_text(speed.low), ratio_text(speed.high));
}

std::size_t count_of(const Comparison& comparison, const std::string& suite, Relation relation) {
  return static_cast<std::size_t>(
      std::count_if(comparison.cases.begin(), comparison.cases.end(),
                    [&](const ComparedCase& one) { return one.suite == suite && one.relation == relation; }));
}

std::string suite_of(const std::string& id) { return id.substr(0, id.find('/')); }

// "A: fail" of "A: fail: 3 of 64 elements ...": cases are counted by side and verdict.
std::string short_reason(const std::string& why) {
  const std::size_t side = why.find(": ");
  return side == std::string::npos ? why : why.substr(0, why.find(": ", side + 2));
}

using LeftOut = std::map<std::string, std::map<std::string, int>>;  // by suite and reason

LeftOut left_out_of(const Comparison& comparison) {
  LeftOut out;
  for (const UnmatchedCase& lone : comparison.lone) ++out[suite_of(lone.id)][short_reason(lone.why)];
  return out;
}

void add_change(DataTable& table, const ComparedCase& one) {
  table.rows.push_back({std::string(name(one.relation)), ratio_text(one.speed.ratio), interval_of(one.speed),
                        format_quantity(one.rate_a, one.unit), format_quantity(one.rate_b, one.unit), one.id});
}

}  // namespace

Comparisons comparisons_of(std::span<const Side> sides) {
  Comparisons all;
  if (sides.size() < 2) return all;
  try {
    const auto in_turns = [&](const Side& side) {  // contenders of one run
      const Report& a = *sides.front().report;
      return !a.run.invocation.empty() && a.run.invocation == side.report->run.invocation;
    };
    if (std::ranges::all_of(sides.subspan(1), in_turns)) {
      for (const Side& side : sides.subspan(1))
        all.pairs.push_back({&sides.front(), &side, compare_contenders(*sides.front().report, *side.report)});
      return all;
    }
    const std::vector<Invocation> first{invocation_of(*sides.front().report, "report " + sides.front().letter)};
    for (const Side& side : sides.subspan(1)) {
      const std::vector<Invocation> other{invocation_of(*side.report, "report " + side.letter)};
      all.pairs.push_back({&sides.front(), &side, compare(first, other, {})});
    }
  } catch (const ReadError& e) {
    all.pairs.clear();
    all.refusal = fmt::format("These reports cannot be compared: {}", e.what());
  }
  return all;
}

DataTable ratio_table(const SideComparison& pair) {
  LeftOut left_out = left_out_of(pair.comparison);
  DataTable table;
  table.title = fmt::format("{} against {}", pair.b->letter, pair.a->letter);
  table.columns = {{"suite"},
                   {pair.b->letter + "/" + pair.a->letter + ", geometric mean", true},
                   {"95% interval"},
                   {"cases", true},
                   {"faster", true},
                   {"slower", true},
                   {"same", true},
                   {"unsure", true},
                   {"left out of the mean"}};
  for (const SuiteSpeed& suite : pair.comparison.suites) {
    std::vector<std::string> row{suite.suite, ratio_text(suite.speed.ratio), interval_of(suite.speed),
                                 fmt::format("{}", suite.cases)};
    for (const Relation relation : {Relation::faster, Relation::slower, Relation::same, Relation::unsure})
      row.push_back(fmt::format("{}", count_of(pair.comparison, suite.suite, relation)));
    row.push_back(reasons_text(left_out[suite.suite]));
    left_out.erase(suite.suite);
    table.rows.push_back(std::move(row));
  }
  for (const auto& [suite, reasons] : left_out)
    table.rows.push_back({suite, "-", "-", "0", "0", "0", "0", "0", reasons_text(reasons)});
  return table;
}

DataTable changes_table(const SideComparison& pair, std::size_t most) {
  std::vector<const ComparedCase*> sure;
  for (const ComparedCase& one : pair.comparison.cases) {
    if (one.relation == Relation::faster || one.relation == Relation::slower) sure.push_back(&one);
  }
  std::stable_sort(sure.begin(), sure.end(),
                   [](const ComparedCase* x, const ComparedCase* y) { return x->speed.ratio > y->speed.ratio; });
  DataTable table;
  table.title = "Largest gains and losses";
  table.columns = {{""},
                   {pair.b->letter + "/" + pair.a->letter, true},
                   {"95% interval"},
                   {pair.a->letter, true},
                   {pair.b->letter, true},
                   {"case"}};
  std::size_t gains = 0;
  std::size_t losses = 0;
  for (const ComparedCase* one : sure) {
    if (one->relation == Relation::faster && gains++ < most) add_change(table, *one);
  }
  std::reverse(sure.begin(), sure.end());  // the largest loss first
  for (const ComparedCase* one : sure) {
    if (one->relation == Relation::slower && losses++ < most) add_change(table, *one);
  }
  return table;
}

namespace {

constexpr std::size_t max_rows = 16;  // per chart; the table has all

double distance(const ComparedCase& one) { return std::fabs(std::log(one.speed.ratio)); }

std::string without_suite(const std::string& id, const std::string& suite) {
  return id.starts_with(suite + "/") ? id.substr(suite.size() + 1) : id;
}

// Drops "/x1", the end of nearly all ids.
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
  chart.title = cases.size() > max_rows
                    ? fmt::format("{}: the {} most different of {}", suite.suite, max_rows, cases.size())
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
    if (chart.rows.size() <= max_rows)
      chart.rows.push_back(
          {one_rank(id), one->speed.ratio, one->speed.low, one->speed.high, std::string(name(one->relation)), false});
    table.rows.push_back({std::string(name(one->relation)), ratio_text(one->speed.ratio), interval_of(one->speed),
                          format_quantity(one->rate_a, one->unit), format_quantity(one->rate_b, one->unit),
                          one->note.empty() ? id : id + " (" + one->note + ")"});
  }
  chart.description =
      fmt::format("Ratios of speed with 95% intervals, {} of {} against {}; the diamond is their geometric mean, {}.",
                  counted(cases.size(), "case"), b.name, a.name, ratio_text(suite.speed.ratio));
  return {slug(suite.suite + " " + b.letter), std::move(chart), std::move(table)};
}

void add_tables(Html& html, const SideComparison& pair) {
  html.raw("<div class=\"told\">\n");
  add_table(html, ratio_table(pair), "Ratios by suite");
  html.raw("</div>\n");
  const DataTable changes = changes_table(pair);
  if (changes.rows.empty()) {
    html.element("p", "No case is faster or slower beyond its uncertainty.", "class=\"note\"");
  } else {
    html.element("h4", changes.title).raw("\n<div class=\"told\">\n");
    add_table(html, changes, changes.title);
    html.raw("</div>\n");
  }
}

std::string how_to_read(const SideComparison& pair) {
  std::string text = fmt::format(
      "Speed as a multiple of {}: above 1.00x, right of the line in a chart, is faster. A case is faster or slower if "
      "its interval excludes 1; the diamond is the geometric mean of a suite.",
      pair.a->called());
  if (pair.comparison.source == NoiseSource::assumed)
    text += fmt::format(" With one report a side, {:.0f}% noise from run to run is assumed.",
                        100.0 * pair.comparison.assumed_spread);
  return text;
}

}  // namespace

void add_comparison(std::vector<SectionPart>& parts, const Material& material) {
  parts.push_back({.notice = material.comparisons.refusal});
  for (const SideComparison& pair : material.comparisons.pairs) {
    SectionPart& part = parts.emplace_back();
    part.title = fmt::format("{} against {}", pair.b->called(), pair.a->called());
    part.lead = how_to_read(pair);
    add_tables(part.tables, pair);
    for (const SuiteSpeed& suite : pair.comparison.suites)
      part.figures.push_back(figure_of(pair.comparison, suite, *pair.a, *pair.b));
    if (part.figures.empty())
      part.notice = fmt::format("No case passed in both {} and {}.", pair.a->name, pair.b->name);
  }
}

}  // namespace gpubench::page
