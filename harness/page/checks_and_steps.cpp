// What the checks found by kind of op, and where a training step's time goes by kind of op.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/core/record.h"
#include "harness/page/sections.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

/// The largest share of its bound that a kind of op used in one precision.
struct Used {
  double most = -1.0;
  std::string case_id;
  std::string op;
  std::string phase;
  std::int64_t judged = 0;
  int checks = 0;
};

struct Budget {
  std::vector<std::string> kinds;    // in the order in which they appear
  std::vector<std::string> recipes;  // likewise
  std::map<std::pair<std::string, std::string>, Used> used;
};

void add_once(std::vector<std::string>& to, const std::string& word) {
  if (std::find(to.begin(), to.end(), word) == to.end()) to.push_back(word);
}

Budget budget_of(const Report& report) {
  Budget budget;
  for (const CaseRecord& record : report.cases) {
    for (const OpParity& op : record.parity.ops) {
      if (op.judged == 0) continue;
      add_once(budget.kinds, op.kind);
      add_once(budget.recipes, record.c.recipe);
      Used& used = budget.used[{op.kind, record.c.recipe}];
      used.judged += op.judged;
      ++used.checks;
      if (op.error_over_bound <= used.most) continue;  // so that NaN counts
      used.most = op.error_over_bound;
      used.case_id = record.id;
      used.op = op.label;
      used.phase = op.phase;
    }
  }
  return budget;
}

std::string share_text(double share) {
  if (std::isnan(share) || std::isinf(share)) return "inf";
  if (share == 0.0) return "0";
  if (share >= 999.5) return fmt::format("{:.0e}", share);
  return share < 0.005 ? "<0.01" : fmt::format("{:.2f}", share);
}

chart::HeatCell cell_of(const Used& used) {
  chart::HeatCell cell;
  cell.text = share_text(used.most);
  cell.marked = !(used.most <= 1.0);
  cell.shade = cell.marked ? 1.0 : used.most;
  cell.note = fmt::format("{} of its bound, {} {} in {}", cell.text, used.op, used.phase, used.case_id);
  return cell;
}

std::vector<std::string> worst_first(const Budget& budget) {
  const auto most_of = [&](const std::string& kind) {
    double most = 0.0;
    for (const auto& [place, used] : budget.used) {
      if (place.first == kind && !(used.most <= most)) most = std::isnan(used.most) ? HUGE_VAL : used.most;
    }
    return most;
  };
  std::vector<std::string> kinds = budget.kinds;
  std::stable_sort(kinds.begin(), kinds.end(),
                   [&](const std::string& a, const std::string& b) { return most_of(a) > most_of(b); });
  return kinds;
}

/// All ops of one kind in a step.
struct Kind {
  std::string name;
  int ops = 0;
  double median_ns = 0.0;
  double share = 0.0;
  std::string largest{};  // the op that takes the most
  double largest_share = 0.0;
};

std::vector<Kind> kinds_of(const Derived& derived) {
  std::vector<Kind> kinds;
  for (const OpShare& op : derived.breakdown) {
    auto kind = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == op.kind; });
    if (kind == kinds.end()) kind = kinds.insert(kinds.end(), Kind{.name = op.kind});
    ++kind->ops;
    kind->median_ns += op.median_ns;
    kind->share += op.share;
    if (op.share < kind->largest_share) continue;
    kind->largest = op.label;
    kind->largest_share = op.share;
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) { return a.share > b.share; });
  return kinds;
}

constexpr std::size_t most_parts = 16;  // of a chart; the table has them all

void add_step(chart::StackChart& chart, DataTable& table, const Entry& e) {
  const CaseRecord& record = *e.record;
  const Derived& d = record.derived;
  const std::string name = fmt::format("{}, {}", short_name(record), series_name(e));
  const bool sure = reliable(record);
  chart::StackedBar bar{fmt::format("{}: {}{}", name, sure ? "" : "~", format_time_ns(record.summary.median_ns)), {}};
  if (!sure) bar.label += ", unreliable";
  for (const Kind& kind : kinds_of(d)) {
    const std::string text = percent_text(kind.share);
    const std::string time = format_time_ns(kind.median_ns);
    bar.parts.push_back({kind.name, kind.share,
                         fmt::format("{}: {} of the step, {} in {}", kind.name, text, time, counted(kind.ops, "op"))});
    table.rows.push_back({name, kind.name, fmt::format("{}", kind.ops), time, text, kind.largest});
  }
  const std::optional<double> left = sure_remainder(record);
  const std::string text = left ? fmt::format("{:+.1f}%", 100.0 * *left) : "unknown";
  if (left && *left > 0.0) bar.parts.push_back({"left over", *left, "left over: " + text});
  if (sure && !(left && *left >= 0.0)) bar.label += ", left over " + text;
  const char* why = !left ? "" : *left > 0.0 ? " (gaps between launches)" : " (overlap, warm caches)";
  table.rows.push_back({name, std::string("left over") + why, "",
                        left ? format_time_ns(*left * record.summary.median_ns) : "unknown", text, ""});
  if (chart.bars.size() < most_parts) chart.bars.push_back(std::move(bar));
}

}  // namespace

std::vector<Figure> error_budget_of(const Side& side, std::size_t /*drawn*/) {
  const Budget budget = budget_of(*side.report);
  chart::HeatMap map;
  map.title = "Largest error over its bound";
  map.columns = budget.recipes;
  map.rows = worst_first(budget);
  DataTable table;
  table.columns = {{"op"},       {"precision"}, {"error / bound", true}, {"elements judged", true}, {"checks", true},
                   {"worst in"}, {"phase"}};
  for (const std::string& kind : map.rows) {
    std::vector<chart::HeatCell> row;
    for (const std::string& recipe : budget.recipes) {
      const auto found = budget.used.find({kind, recipe});
      row.push_back(found == budget.used.end() ? chart::HeatCell{} : cell_of(found->second));
      if (found == budget.used.end()) continue;
      const Used& used = found->second;
      table.rows.push_back({kind, recipe, share_text(used.most), format_count(used.judged),
                            fmt::format("{}", used.checks), used.case_id, used.phase});
    }
    map.cells.push_back(std::move(row));
  }
  table.title = counted(table.rows.size(), "cell");
  map.description = fmt::format(
      "Kinds of op by precision; each cell is the largest error as a share of its bound. {} above 1, marked.",
      std::count_if(budget.used.begin(), budget.used.end(), [](const auto& one) { return !(one.second.most <= 1.0); }));
  return {{slug("budget " + side.letter), std::move(map), std::move(table)}};
}

std::vector<Entries> workloads_with_a_breakdown(std::span<const Side> sides) {
  return by_workload(
      entries_of(sides, [](const CaseRecord& r) { return r.c.ranks == 1 && !r.derived.breakdown.empty(); }));
}

// The steps of a workload in one chart, so that an op has one colour in all of them.
void draw_breakdown(std::span<const Entry> workload, std::vector<Figure>& figures) {
  const std::string title = workload_name(workload.front());
  const std::string steps = counted(workload.size(), "step");
  chart::StackChart chart{title, fmt::format("The time of {} of {} by kind of op.", steps, title), {}};
  if (workload.size() > most_parts) chart.title += fmt::format(": the first {} of {}", most_parts, steps);
  DataTable table{
      steps, {{"step"}, {"op"}, {"ops", true}, {"alone", true, "s"}, {"of the step", true}, {"largest"}}, {}};
  for (const Entry& e : workload) add_step(chart, table, e);
  figures.push_back({slug(title), std::move(chart), std::move(table)});
}

}  // namespace gpubench::page
