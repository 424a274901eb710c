#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

/// The largest share of its bound used by a kind of op in one precision.
struct Used {
  double most = -1.0;
  std::string case_id, op, phase;
  std::int64_t judged = 0, checks = 0;
};

struct Budget {
  std::vector<std::string> kinds;
  std::vector<std::string> recipes;
  std::map<std::pair<std::string, std::string>, Used> used;
};

void add_once(std::vector<std::string>& to, const std::string& word) {
  if (std::find(to.begin(), to.end(), word) == to.end()) to.push_back(word);
}

Budget budget_of(const Report& report) {
  Budget budget;
  for (const CaseRecord& record : report.cases) {
    const auto add = [&](const auto& checked, int checks, const std::string& op) {
      if (checked.judged == 0) return;
      add_once(budget.kinds, checked.kind);
      add_once(budget.recipes, record.c.recipe);
      Used& used = budget.used[{checked.kind, record.c.recipe}];
      add_count(used.judged, checked.judged);
      add_count<std::int64_t>(used.checks, checks);
      if (checked.error_over_bound <= used.most) return;  // false for NaN, which counts
      used.most = checked.error_over_bound;
      used.case_id = record.key();
      used.op = op;
      used.phase = checked.phase;
    };
    for (const OpParity& op : record.parity.ops) add(op, 1, op.label);
    for (const PassedOps& passed : record.parity.passed.value_or(std::vector<PassedOps>{}))
      add(passed, passed.ops, passed.kind);
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

}  // namespace

std::vector<Figure> error_budget_of(const Side& side) {
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

}  // namespace gpubench::page
