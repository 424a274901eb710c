// What the checks found by kind of op; what a training step is made of: time by kind of op and by layer, memory.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/core/record.h"
#include "harness/core/step_parts.h"
#include "harness/core/text/quantity.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

/// The largest share of its bound that a kind of op used in one precision.
struct Used {
  double most = -1.0;
  std::string case_id, op, phase;
  std::int64_t judged = 0, checks = 0;
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
    const auto add = [&](const auto& checked, int checks, const std::string& op) {
      if (checked.judged == 0) return;
      add_once(budget.kinds, checked.kind);
      add_once(budget.recipes, record.c.recipe);
      Used& used = budget.used[{checked.kind, record.c.recipe}];
      add_count(used.judged, checked.judged);
      add_count<std::int64_t>(used.checks, checks);
      if (checked.error_over_bound <= used.most) return;  // so that NaN counts
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

constexpr std::size_t most_parts = 16;  // of a chart; the table has them all

void add_step(chart::StackChart& chart, DataTable& table, const Entry& e) {
  const CaseRecord& record = *e.record;
  const Derived& d = record.derived;
  const std::string name = fmt::format("{}, {}", short_name(record), series_name(e));
  const bool sure = reliable(record);
  chart::StackedBar bar{fmt::format("{}: {}{}", name, sure ? "" : "~", format_time_ns(record.summary.median_ns)), {}};
  if (!sure) bar.label += ", unreliable";
  const std::optional<double> left = sure_remainder(record);
  const double all = left ? 1.0 : 1.0 - d.remainder;  // the step; where the ops' sum is too far from it, that sum
  if (!left) bar.label += ", shares of the ops' sum";
  for (const StepPart& kind : parts_by_kind(d.breakdown)) {
    const std::string text = share_is_sure(kind.share, record.summary) ? percent_text(kind.share) : "unknown";
    const std::string time = format_time_ns(kind.median_ns);
    bar.parts.push_back({kind.name, kind.share / all,
                         fmt::format("{}: {} of the step, {} in {}", kind.name, text, time, counted(kind.ops, "op"))});
    table.rows.push_back({name, kind.name, fmt::format("{}", kind.ops), time, text, format_quantity(kind.flop, "FLOP"),
                          format_quantity(kind.bytes, "B"), kind.largest});
  }
  const std::string text = left ? fmt::format("{:+.1f}%", 100.0 * *left) : "unknown";
  if (left && *left > 0.0) bar.parts.push_back({"left over", *left, "left over: " + text});
  if (sure && !(left && *left >= 0.0)) bar.label += ", left over " + text;
  const char* why = !left ? "" : *left > 0.0 ? " (gaps between launches)" : " (overlap, warm caches)";
  table.rows.push_back({name, std::string("left over") + why, "",
                        left ? format_time_ns(*left * record.summary.median_ns) : "unknown", text, "", "", ""});
  if (const std::optional<double> mfu = utilization(d, d.flop_per_s)) {
    bar.label += fmt::format(", {} {}", utilization_name(record.c), percent_text(*mfu));
    table.rows.push_back({name, std::string(utilization_name(record.c)), "", "", percent_text(*mfu),
                          format_quantity(d.flop, "FLOP"), "",
                          fmt::format("{}'s peak: {}", d.peak->limit, d.peak->peak_source)});
  }
  if (chart.bars.size() < most_parts) chart.bars.push_back(std::move(bar));
}

/// Of each series the step with the most work: its layers are told apart best.
std::vector<const Entry*> largest_steps(std::span<const Entry> workload) {
  std::vector<const Entry*> largest;
  for (const Entry& e : workload) {
    const auto same = std::ranges::find(largest, series_name(e), [](const Entry* one) { return series_name(*one); });
    if (same == largest.end()) {
      largest.push_back(&e);
    } else if (e.record->derived.flop > (*same)->record->derived.flop) {
      *same = &e;
    }
  }
  return largest;
}

constexpr std::size_t most_layers = 24;  // of one step's bars; the table has them all

chart::BarGroup layers_of(const Entry& e, DataTable& table) {
  const CaseRecord& record = *e.record;
  const std::vector<StepPart> layers = parts_by_layer(record.derived.breakdown);
  chart::BarGroup group{fmt::format("{}, {}", short_name(record), series_name(e)), {}};
  StepPart rest{.name = ""};
  for (const StepPart& layer : layers) {
    const std::string time = format_time_ns(layer.median_ns);
    const std::string share = share_is_sure(layer.share, record.summary) ? percent_text(layer.share) : "unknown";
    const std::string rate = format_quantity(layer.flop_per_s(), "FLOP/s");
    table.rows.push_back({group.title, layer.name, fmt::format("{}", layer.ops), time, share,
                          format_quantity(layer.flop, "FLOP"), format_quantity(layer.bytes, "B"), rate, layer.largest});
    if (group.bars.size() == most_layers) {
      ++rest.ops;
      rest.median_ns += layer.median_ns;
      continue;
    }
    group.bars.push_back({.label = layer.name,
                          .value = layer.median_ns,
                          .text = fmt::format("{}, {}", time, share),
                          .note = fmt::format("{}: {} of the step, {} in {}, {}; the largest is {}", layer.name, share,
                                              time, counted(layer.ops, "op"), rate, layer.largest),
                          .doubtful = !reliable(record)});
  }
  if (rest.ops > 0)
    group.bars.push_back({.label = counted(rest.ops, "more layer"),
                          .value = rest.median_ns,
                          .text = format_time_ns(rest.median_ns),
                          .note = "",
                          .doubtful = !reliable(record)});
  return group;
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
  DataTable table{steps,
                  {{"step"},
                   {"op"},
                   {"ops", true},
                   {"alone", true, "s"},
                   {"of the step", true},
                   {"work", true},
                   {"bytes", true},
                   {"largest"}},
                  {}};
  for (const Entry& e : workload) add_step(chart, table, e);
  figures.push_back({slug(title), std::move(chart), std::move(table)});
}

// The layers of a workload's largest step in each series.
void draw_layers(std::span<const Entry> workload, std::vector<Figure>& figures) {
  const std::string title = workload_name(workload.front()) + " by layer";
  chart::BarChart chart{title, "The time of each layer of a step: its ops alone, forward and backward.", {}, {}};
  chart.value.labels = chart::TickLabels::time_ns;
  DataTable table{"",
                  {{"step"},
                   {"layer"},
                   {"ops", true},
                   {"alone", true, "s"},
                   {"of the step", true},
                   {"work", true},
                   {"bytes", true},
                   {"rate", true},
                   {"largest"}},
                  {}};
  for (const Entry* e : largest_steps(workload)) {
    const std::vector<OpShare>& ops = e->record->derived.breakdown;
    if (parts_by_layer(ops).size() < ops.size()) chart.groups.push_back(layers_of(*e, table));  // else it has none
  }
  table.title = counted(table.rows.size(), "layer");
  if (!chart.groups.empty()) figures.push_back({slug(title), std::move(chart), std::move(table)});
}

// Memory of the same steps; kinds have one colour in all of them.
void draw_memory(std::span<const Entry> workload, std::vector<Figure>& figures) {
  const std::string title = workload_name(workload.front()) + ": memory";
  chart::StackChart chart{title, "The memory of a step's tensors by kind, with every value kept.", {}};
  DataTable table{"", {{"step"}, {"kind"}, {"bytes", true}, {"of all", true}}, {}};
  for (const Entry* e : largest_steps(workload)) {
    const CaseRecord& record = *e->record;
    if (!record.memory) continue;
    double all = 0.0;
    for (const MemoryPart& part : *record.memory) all += static_cast<double>(part.bytes);
    const std::string name = fmt::format("{}, {}", short_name(record), series_name(*e));
    chart::StackedBar bar{fmt::format("{}: {}", name, format_quantity(all, "B")), {}};
    for (const MemoryPart& part : *record.memory) {
      const auto bytes = static_cast<double>(part.bytes);
      const std::string share = percent_text(bytes / all);
      const std::string text = format_quantity(bytes, "B");
      bar.parts.push_back({part.kind, bytes / all, fmt::format("{}: {}, {} of all", part.kind, text, share)});
      table.rows.push_back({name, part.kind, text, share});
    }
    chart.bars.push_back(std::move(bar));
  }
  table.title = counted(table.rows.size(), "kind");
  if (!chart.bars.empty()) figures.push_back({slug(title), std::move(chart), std::move(table)});
}

}  // namespace gpubench::page
