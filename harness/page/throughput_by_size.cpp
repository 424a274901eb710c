// throughput_by_size(): see throughput.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/page/known_ceilings.h"
#include "harness/page/rates.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

constexpr std::size_t sizes_for_a_curve = 3;

// Of the series that has the most: precisions differ in their bytes.
std::size_t sizes_of(const WorkloadEntries& workload, const WorkAxis& work) {
  std::map<std::string, std::set<double>> sizes;
  std::size_t most = 0;
  for (const Entry& e : workload.entries) {
    std::set<double>& of_series = sizes[series_name(e)];
    of_series.insert(work.of(*e.record));
    most = std::max(most, of_series.size());
  }
  return most;
}

// A line says that what lies between two points lies on it: true only where one dimension grows and all else stays.
bool one_curve(const std::vector<chart::Series>& series, const DimsText& dims) {
  return dims.varying().size() == 1 && std::all_of(series.begin(), series.end(), [](const chart::Series& s) {
           std::set<double> sizes;
           for (const chart::Point& point : s.points) sizes.insert(point.x);
           return sizes.size() == s.points.size();
         });
}

// The published peaks of the precisions that are drawn, each once.
std::vector<chart::Guide> peaks_of(const WorkloadEntries& workload) {
  std::vector<chart::Guide> guides;
  std::set<std::string> told;
  for (const Entry& e : workload.entries) {
    const KnownCeilings& ceilings = e.side->ceilings;
    const std::string before = e.side->letter.empty() ? "" : e.side->letter + " ";
    const std::string& recipe = e.record->c.recipe;
    const auto add = [&](const std::string& label, const KnownCeiling& ceiling) {
      if (told.insert(label).second) guides.push_back(level(label, ceiling.value));
    };
    const auto published = ceilings.published.find(recipe);
    if (workload.unit == "FLOP/s" && published != ceilings.published.end())
      add(before + recipe + " peak", published->second);
    if (workload.unit == "B/s" && ceilings.published_memory) add(before + "memory peak", *ceilings.published_memory);
  }
  return guides;
}

Figure curve(const WorkloadEntries& workload, const WorkAxis& work) {
  const DimsText dims(workload.entries);
  chart::PlotChart plot;
  plot.title = workload.title();
  plot.x = work.axis;
  plot.y = rate_axis(workload.unit, chart::Scale::log10);
  for (const Entry& e : workload.entries) {
    const std::string series = series_name(e);
    add_point(plot.series, series, chart::Mark::scatter,
              rate_point(*e.record, work.of(*e.record),
                         fmt::format("{} · {}: {}", short_name(*e.record, dims), series, rate_text(*e.record))));
  }
  for (chart::Series& series : plot.series) sort_by_x(series.points);
  if (one_curve(plot.series, dims)) {
    for (chart::Series& series : plot.series) series.mark = chart::Mark::line;
  }
  plot.guides = peaks_of(workload);
  plot.description =
      fmt::format("{} of {} against the work of one run, {} in {}, both axes logarithmic.", workload.unit,
                  workload.title(), counted(workload.entries.size(), "case"), counted(plot.series.size(), "precision"));
  return {slug(workload.title()), plot, rates_table(workload.entries, dims)};
}

// Workloads of one unit that have no curve: a bar per case.
Figure bars(const std::string& unit, const std::vector<WorkloadEntries>& workloads) {
  chart::BarChart chart;
  chart.title = "Measured at one or two sizes, " + unit;
  chart.value = rate_axis(unit, chart::Scale::linear);
  std::vector<Entry> all;
  for (const WorkloadEntries& workload : workloads) {
    const DimsText dims(workload.entries);
    chart::BarGroup group{workload.title(), {}};
    for (const Entry& e : workload.entries) {
      chart::Bar bar;
      const chart::Point point = rate_point(*e.record, 0.0, "");
      bar.label = fmt::format("{} {}", dims.varying().empty() ? "" : dims.of(*e.record), series_name(e));
      bar.value = point.y;
      bar.low = point.low;
      bar.high = point.high;
      bar.limit = published_limit(*e.record);
      bar.text = rate_text(*e.record);
      bar.doubtful = point.doubtful;
      bar.note = e.record->c.label.empty() ? e.record->id : e.record->c.label;
      group.bars.push_back(std::move(bar));
      all.push_back(e);
    }
    chart.groups.push_back(std::move(group));
  }
  chart.description = fmt::format("{} of {}, a bar each, by workload.", unit, counted(all.size(), "case"));
  const DimsText dims(all);
  Figure figure{slug("few sizes " + unit), std::move(chart), rates_table(all, dims)};
  // Of several workloads each row must say which.
  figure.table.columns.insert(figure.table.columns.begin(), TableColumn{"workload"});
  for (std::size_t row = 0; row < all.size(); ++row)
    figure.table.rows[row].insert(figure.table.rows[row].begin(),
                                  all[row].record->c.suite + "/" + all[row].record->c.workload);
  return figure;
}

}  // namespace

Section throughput_by_size(std::span<const Side> sides) {
  Section section{"throughput",
                  "Throughput against size",
                  "Each op by itself, from small to large. Further right is more work in one run, higher is faster; "
                  "where the device's published peak is known it is the dashed line.",
                  {{}}};
  std::vector<std::pair<std::string, std::vector<WorkloadEntries>>> few;  // by unit
  for (WorkloadEntries& workload : by_workload(sides, [](const CaseRecord& r) { return r.c.ranks == 1; })) {
    const WorkAxis work = work_axis(workload);
    if (sizes_of(workload, work) >= sizes_for_a_curve) {
      section.groups[0].figures.push_back(curve(workload, work));
      continue;
    }
    auto same = std::find_if(few.begin(), few.end(), [&](const auto& one) { return one.first == workload.unit; });
    if (same == few.end()) same = few.insert(few.end(), {workload.unit, {}});
    same->second.push_back(std::move(workload));
  }
  for (const auto& [unit, workloads] : few) section.groups[0].figures.push_back(bars(unit, workloads));
  return section;
}

}  // namespace gpubench::page
