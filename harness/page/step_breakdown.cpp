#include "harness/page/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

/// All ops of one kind in a step.
struct Kind {
  std::string name;
  int ops = 0;
  double median_ns = 0.0;
  double share = 0.0;
  std::string largest;  // the op that takes the most
  double largest_share = 0.0;
};

std::vector<Kind> kinds_of(const Derived& derived) {
  std::vector<Kind> kinds;
  for (const OpShare& op : derived.breakdown) {
    auto found = std::find_if(kinds.begin(), kinds.end(), [&](const Kind& k) { return k.name == op.kind; });
    if (found == kinds.end()) {
      kinds.emplace_back();
      kinds.back().name = op.kind;
      found = kinds.end() - 1;
    }
    ++found->ops;
    found->median_ns += op.median_ns;
    found->share += op.share;
    if (op.share >= found->largest_share) {
      found->largest = op.label;
      found->largest_share = op.share;
    }
  }
  std::stable_sort(kinds.begin(), kinds.end(), [](const Kind& a, const Kind& b) { return a.share > b.share; });
  return kinds;
}

// Ops alone that take longer than two whole steps were not timed under the step's conditions: then neither they nor
// what they leave over say anything. The same where the step's own time is unreliable.
constexpr double least_remainder = -1.0;

std::string remainder_text(const CaseRecord& record) {
  if (!reliable(record) || !(record.derived.remainder >= least_remainder)) return "unknown";
  return fmt::format("{:+.1f}%", 100.0 * record.derived.remainder);
}

std::string step_name(const Side& side, const CaseRecord& record) {
  const std::string shape = record.c.label.empty() ? to_string(record.c.dims) : record.c.label;
  return fmt::format("{}, {}", shape, series_name({&side, &record}));
}

constexpr std::size_t most_parts = 16;  // of a chart; the table has them all

void add_step(chart::StackChart& chart, DataTable& table, const Side& side, const CaseRecord& record) {
  const Derived& d = record.derived;
  const std::string name = step_name(side, record);
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
  const std::string left = remainder_text(record);
  const bool known = left != "unknown";
  if (known && d.remainder > 0.0) bar.parts.push_back({"left over", d.remainder, "left over: " + left});
  if (sure && (!known || d.remainder < 0.0)) bar.label += fmt::format(", left over {}", left);
  const std::string_view why = !known              ? "left over"
                               : d.remainder > 0.0 ? "left over (gaps between launches)"
                                                   : "left over (overlap, warm caches)";
  table.rows.push_back({name, std::string(why), "",
                        known ? format_time_ns(d.remainder * record.summary.median_ns) : "unknown", left, ""});
  if (chart.bars.size() < most_parts) chart.bars.push_back(std::move(bar));
}

// The steps of a workload in one chart, so that an op has one colour in all of them.
Figure figure_of(const WorkloadEntries& workload) {
  chart::StackChart chart;
  chart.title = workload.title();
  DataTable table;
  table.columns = {{"step"}, {"op"}, {"ops", true}, {"alone", true, "s"}, {"of the step", true}, {"largest"}};
  for (const Entry& e : workload.entries) add_step(chart, table, *e.side, *e.record);
  if (workload.entries.size() > most_parts)
    chart.title += fmt::format(": the first {} of {}", most_parts, counted(workload.entries.size(), "step"));
  table.title = counted(workload.entries.size(), "step");
  chart.description =
      fmt::format("The time of {} of {} by kind of op.", counted(workload.entries.size(), "step"), workload.title());
  return {slug(workload.title()), std::move(chart), std::move(table)};
}

}  // namespace

Section step_breakdown(std::span<const Side> sides) {
  Section section{
      "breakdown",
      "Training step by op",
      "Each op timed alone, as a share of the whole step. What is left over has a sign: gaps between launches "
      "are above zero; below zero the ops ran faster in the step, overlapped or with warm caches; it is unknown where "
      "the step's timing is unreliable, or where the ops alone take more than two steps.",
      {{}}};
  const auto steps = by_workload(
      sides, [](const CaseRecord& record) { return record.c.ranks == 1 && !record.derived.breakdown.empty(); });
  for (const WorkloadEntries& workload : steps) section.groups[0].figures.push_back(figure_of(workload));
  return section;
}

}  // namespace gpubench::page
