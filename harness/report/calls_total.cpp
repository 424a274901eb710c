
#include <fmt/format.h>

#include <algorithm>

#include "harness/core/text/quantity.h"
#include "harness/core/text/visible_text.h"
#include "harness/report/console.h"

namespace gpubench {
namespace {

std::string recipe_of(const CaseRecord& record) {
  std::string text = record.c.recipe;
  for (const std::string& mode : record.c.modes) text += "/" + mode;
  return record.c.ranks > 1 ? fmt::format("{}/x{}", text, record.c.ranks) : text;
}

CallsTotal total_of(const std::string& suite, const std::string& recipe, std::span<const CaseRecord* const> records) {
  CallsTotal total{suite, recipe};
  double ns = 0.0, low = 0.0, high = 0.0;
  std::int64_t missing = 0;
  const CaseRecord* first = nullptr;
  for (const CaseRecord* record : records) {
    const double calls = *record->c.calls;
    ++total.shapes;
    total.calls += calls;
    if (record->verdict != Verdict::pass || !half_width(record->summary)) {
      if (missing++ == 0) first = record;
      continue;
    }
    ns += calls * record->summary.median_ns;
    low += calls * record->summary.ci95_low_ns;
    high += calls * record->summary.ci95_high_ns;
  }
  if (missing == 0) {
    total.ns = ns, total.low_ns = low, total.high_ns = high;
    return total;
  }
  total.missing =
      fmt::format("{} of {} shapes {} no time, the first, {}, {}", missing, total.shapes, missing == 1 ? "has" : "have",
                  first->key(), first->verdict == Verdict::pass ? "a single round" : name(first->verdict));
  return total;
}

std::string count_of(double calls) { return fmt::format("{:.15g} call{}", calls, calls == 1.0 ? "" : "s"); }

}  // namespace

std::vector<CallsTotal> calls_totals(std::span<const CaseRecord> records) {
  std::vector<const CaseRecord*> listed;
  for (const CaseRecord& record : records) {
    if (record.c.calls) listed.push_back(&record);
  }
  std::vector<CallsTotal> totals;
  for (const auto& recipe : grouped(listed, [](const CaseRecord* r) { return recipe_of(*r); })) {
    std::vector<const CaseRecord*> all;
    for (const CaseRecord* const* record : recipe.items) all.push_back(*record);
    const auto suites = grouped(all, [](const CaseRecord* r) { return r->c.suite; });
    for (const auto& suite : suites) {
      std::vector<const CaseRecord*> own;
      for (const CaseRecord* const* record : suite.items) own.push_back(*record);
      totals.push_back(total_of(suite.key, recipe.key, own));
    }
    if (suites.size() > 1) totals.push_back(total_of("all", recipe.key, all));
  }
  return totals;
}

std::string time_of(const CallsTotal& total) {
  if (!total.ns) return "n/a";
  const bool sure = (*total.high_ns - *total.low_ns) / 2.0 <= max_half_width * *total.ns;
  return (sure ? "" : "~") + format_time_ns(*total.ns);
}

std::string explanation_of(const CallsTotal& total) {
  const std::string calls =
      fmt::format("{} of {} shape{}", count_of(total.calls), total.shapes, total.shapes == 1 ? "" : "s");
  if (!total.ns) return fmt::format("{}: {}", calls, total.missing);
  return fmt::format("{} to {}, {}", format_time_ns(*total.low_ns), format_time_ns(*total.high_ns), calls);
}

std::string text_of(const ShapesExcept& except) {
  return fmt::format("{} {} {}", count_of(except.calls), except.taken ? "taken" : "left out:", except.reason);
}

std::string calls_totals_text(const Report& report, const ConsoleStyle& style) {
  const std::vector<CallsTotal> totals = calls_totals(report.cases);
  if (totals.empty()) return "";
  const std::string of = report.run.shapes ? " of " + visible(report.run.shapes->file) : "";
  std::string text =
      "\n" +
      fitted(fmt::format("All calls{}, one after another: each shape's calls times its median; 95% intervals added up",
                         of),
             style.width, 0) +
      "\n";
  for (const CallsTotal& total : totals) {
    const std::string head = visible(fmt::format("  {:<6} {:<6} {:>9}  ", total.suite, total.recipe, time_of(total)));
    text += head + fitted(visible(explanation_of(total)), style.width, columns(head)) + "\n";
  }
  if (!report.run.shapes) return text;
  for (const ShapesExcept& except : report.run.shapes->excepts)
    text += "  " + fitted(visible(text_of(except)), style.width, 2) + "\n";
  return text;
}

}  // namespace gpubench
