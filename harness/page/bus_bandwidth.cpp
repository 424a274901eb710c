// bus_bandwidth(): see several_ranks.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/page/rates.h"
#include "harness/page/sections.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

constexpr std::size_t messages_for_a_curve = 3;

double message_of(const CaseRecord& record) { return record.derived.collective->message_bytes; }

std::string bytes_text(double bytes) {
  static constexpr const char* prefixes[] = {"", "Ki", "Mi", "Gi", "Ti"};
  std::size_t prefix = 0;
  for (; bytes >= 1024.0 && prefix + 1 < std::size(prefixes); ++prefix) bytes /= 1024.0;
  return fmt::format("{:.4g} {}B", bytes, prefixes[prefix]);
}

// Without the modes, which stand above.
std::string name_of(const Entry& e) {
  const std::string side = e.side->letter.empty() ? "" : e.side->letter + " ";
  return fmt::format("{}{}, {}", side, e.record->c.recipe,
                     counted(static_cast<std::size_t>(e.record->c.ranks), "rank"));
}

DataTable table_of(const WorkloadEntries& workload) {
  DataTable table;
  table.title = counted(workload.entries.size(), "case");
  table.columns = {{"message", true, "B"}, {"precision"},       {"ranks", true}, {"busbw", true, "B/s"},
                   {"algbw", true, "B/s"}, {"time", true, "s"}, {"±95%", true},  {"of the link", true}};
  for (const Entry& e : workload.entries) {
    const CaseRecord& r = *e.record;
    const CollectiveRates& rates = *r.derived.collective;
    const bool link = r.derived.peak && r.derived.peak->limit == "link";
    table.rows.push_back({bytes_text(rates.message_bytes), series_name(e), fmt::format("{}", r.c.ranks),
                          marked_rate(r, rates.bus_bytes_per_s, "B/s"),
                          marked_rate(r, rates.algorithm_bytes_per_s, "B/s"), format_time_ns(r.summary.median_ns),
                          format_interval(r.summary.median_ns, r.summary.ci95_low_ns, r.summary.ci95_high_ns),
                          percent_text(link && reliable(r) ? r.derived.peak->of_peak : std::nullopt)});
  }
  return table;
}

chart::Point point_of(const CaseRecord& record, std::string note) {
  chart::Point point = rate_point(record, message_of(record), std::move(note));
  // The interval is that of the time: the same share of every rate.
  const double share = record.derived.collective->bus_bytes_per_s / point.y;
  point.y *= share;
  if (point.low) point.low = *point.low * share;
  if (point.high) point.high = *point.high * share;
  return point;
}

Figure curve(const WorkloadEntries& workload) {
  chart::PlotChart plot;
  plot.title = workload.title();
  plot.x = {"message", chart::Scale::log2, chart::TickLabels::bytes, ""};
  plot.y = rate_axis("B/s", chart::Scale::log10);
  plot.y.title = "bus bandwidth";
  std::set<std::string> links;
  for (const Entry& e : workload.entries) {
    const std::string series = name_of(e);
    add_point(
        plot.series, series, chart::Mark::line,
        point_of(*e.record, fmt::format("{} · {}: {}", bytes_text(message_of(*e.record)), series,
                                        marked_rate(*e.record, e.record->derived.collective->bus_bytes_per_s, "B/s"))));
    if (const auto& link = e.side->ceilings.link; link && links.insert(e.side->letter).second)
      plot.guides.push_back(level(e.side->letter.empty() ? "link" : e.side->letter + " link", link->value));
  }
  for (chart::Series& series : plot.series) {
    sort_by_x(series.points);
    if (series.points.size() == 1) series.mark = chart::Mark::scatter;
  }
  plot.description = fmt::format("Bus bandwidth of {} against message size, {}, both axes logarithmic.",
                                 workload.title(), counted(plot.series.size(), "series"));
  return {slug(workload.title()), std::move(plot), table_of(workload)};
}

chart::BarGroup group_of(const WorkloadEntries& workload) {
  chart::BarGroup group{workload.title(), {}};
  for (const Entry& e : workload.entries) {
    const chart::Point point = point_of(*e.record, "");
    chart::Bar bar;
    bar.label = bytes_text(message_of(*e.record)) + " " + name_of(e);
    bar.value = point.y;
    bar.low = point.low;
    bar.high = point.high;
    if (e.side->ceilings.link) bar.limit = e.side->ceilings.link->value;
    bar.text = marked_rate(*e.record, point.y, "B/s");
    bar.doubtful = point.doubtful;
    bar.note = e.record->id;
    group.bars.push_back(std::move(bar));
  }
  return group;
}

Figure bars(const std::vector<WorkloadEntries>& workloads) {
  chart::BarChart chart;
  chart.title = "Measured at one or two sizes";
  chart.value = rate_axis("B/s", chart::Scale::linear);
  chart.value.title = "bus bandwidth";
  DataTable table;
  for (const WorkloadEntries& workload : workloads) {
    chart.groups.push_back(group_of(workload));
    DataTable part = table_of(workload);
    table.columns = part.columns;
    for (std::vector<std::string>& row : part.rows) {
      row.insert(row.begin(), workload.title());
      table.rows.push_back(std::move(row));
    }
  }
  table.columns.insert(table.columns.begin(), TableColumn{"collective"});
  table.title = counted(table.rows.size(), "case");
  chart.description = fmt::format("Bus bandwidth of {}, a bar each.", counted(table.rows.size(), "case"));
  return {"few-sizes", std::move(chart), std::move(table)};
}

std::string modes_of(const CaseRecord& record) {
  std::string text;
  for (const std::string& mode : record.c.modes) text += " " + mode;
  return text;
}

// Modes (in place, one by one) are charts of their own: what a chart compares is precisions and numbers of ranks.
std::vector<WorkloadEntries> by_mode(const std::vector<WorkloadEntries>& workloads) {
  std::vector<WorkloadEntries> all;
  for (const WorkloadEntries& workload : workloads) {
    std::map<std::string, std::size_t> places;
    for (const Entry& e : workload.entries) {
      const std::string modes = modes_of(*e.record);
      const auto [place, added] = places.try_emplace(modes, all.size());
      if (added) all.push_back({workload.suite, workload.workload + modes, workload.unit, {}});
      all[place->second].entries.push_back(e);
    }
  }
  return all;
}

std::size_t sizes_of(const WorkloadEntries& workload) {
  std::set<double> sizes;
  for (const Entry& e : workload.entries) sizes.insert(message_of(*e.record));
  return sizes.size();
}

}  // namespace

Section bus_bandwidth(std::span<const Side> sides) {
  Section section{
      "bus-bandwidth",
      "Bus bandwidth against message size",
      "What crosses the links, by nccl-tests' definition, so that collectives and rank counts can be held "
      "against each other and against the link. Small messages are bound by latency: the slope at the left.",
      {{}}};
  std::vector<WorkloadEntries> few;
  const auto collectives =
      by_workload(sides, [](const CaseRecord& record) { return record.derived.collective.has_value(); });
  for (WorkloadEntries& workload : by_mode(collectives)) {
    if (sizes_of(workload) < messages_for_a_curve) {
      few.push_back(std::move(workload));
    } else {
      section.groups[0].figures.push_back(curve(workload));
    }
  }
  if (!few.empty()) section.groups[0].figures.push_back(bars(few));
  return section;
}

}  // namespace gpubench::page
