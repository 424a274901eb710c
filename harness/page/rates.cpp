#include "harness/page/rates.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/reliability.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

double flop_of(const CaseRecord& record) { return record.derived.flop; }
double bytes_of(const CaseRecord& record) { return record.derived.bytes; }

bool any(std::span<const Entry> entries, bool (*holds)(const CaseRecord&)) {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& e) { return holds(*e.record); });
}

bool knows_peak(const CaseRecord& record) { return record.derived.peak && record.derived.peak->of_peak; }

// An unreliable rate has no share.
std::string of_peak(const CaseRecord& record) {
  return percent_text(knows_peak(record) && reliable(record) ? record.derived.peak->of_peak : std::nullopt);
}

}  // namespace

WorkAxis work_axis(const WorkloadEntries& workload) {
  const bool computes = std::all_of(workload.entries.begin(), workload.entries.end(),
                                    [](const Entry& e) { return flop_of(*e.record) > 0.0; });
  WorkAxis work;
  work.axis.scale = chart::Scale::log10;
  work.axis.labels = chart::TickLabels::si;
  work.axis.title = "work of a run";
  const bool bytes = workload.unit == "B/s" || !computes;
  work.axis.unit = bytes ? "B" : "FLOP";
  work.of = bytes ? bytes_of : flop_of;
  return work;
}

chart::Axis rate_axis(const std::string& unit, chart::Scale scale) {
  chart::Axis axis;
  axis.title = "rate";
  axis.scale = scale;
  axis.labels = chart::TickLabels::si;
  axis.unit = unit;
  return axis;
}

chart::Point rate_point(const CaseRecord& record, double x, std::string note) {
  const Summary& s = record.summary;
  chart::Point point{x, record.derived.headline, {}, {}, std::move(note), timing_unreliable(s)};
  // The longer time is the lower rate.
  if (s.ci95_low_ns > 0.0 && s.ci95_high_ns > s.ci95_low_ns) {
    point.low = record.derived.headline * (s.median_ns / s.ci95_high_ns);
    point.high = record.derived.headline * (s.median_ns / s.ci95_low_ns);
  }
  return point;
}

std::string marked_rate(const CaseRecord& record, double rate, std::string_view unit) {
  return (timing_unreliable(record.summary) ? "~" : "") + format_quantity(rate, unit);
}

std::string marked_rate(const CaseRecord& record) {
  return marked_rate(record, record.derived.headline, record.derived.headline_unit);
}

std::string rate_text(const CaseRecord& record) {
  const std::string rate = marked_rate(record);
  if (timing_unreliable(record.summary)) return rate + ", unreliable";
  return knows_peak(record) ? fmt::format("{}, {} of {}", rate, of_peak(record),
                                          record.derived.peak->limit == "link" ? "the link" : "peak")
                            : rate;
}

DataTable rates_table(std::span<const Entry> entries, const DimsText& dims) {
  const bool labels = any(entries, [](const CaseRecord& r) { return !r.c.label.empty(); });
  const bool ranks = any(entries, [](const CaseRecord& r) { return r.c.ranks > 1; });
  const bool peaks = any(entries, knows_peak);
  DataTable table;
  table.title = counted(entries.size(), "case");
  table.columns = {{"shape"}};
  if (labels) table.columns.push_back({"of"});
  table.columns.push_back({"precision"});
  if (ranks) table.columns.push_back({"ranks", true});
  const std::string unit = entries.empty() ? "" : entries.front().record->derived.headline_unit;
  table.columns.insert(table.columns.end(), {{"rate", true, unit}, {"time", true, "s"}, {"±95%", true}});
  if (peaks) table.columns.push_back({"of peak", true});
  for (const Entry& entry : entries) {
    const CaseRecord& r = *entry.record;
    std::vector<std::string> row{dims.of(r)};
    if (labels) row.push_back(r.c.label);
    row.push_back(series_name(entry));
    if (ranks) row.push_back(fmt::format("{}", r.c.ranks));
    row.insert(row.end(), {marked_rate(r), format_time_ns(r.summary.median_ns),
                           format_interval(r.summary.median_ns, r.summary.ci95_low_ns, r.summary.ci95_high_ns)});
    if (peaks) row.push_back(of_peak(r));
    table.rows.push_back(std::move(row));
  }
  if (!dims.common().empty()) table.note = "all: " + dims.common();
  return table;
}

chart::Point bare_point(double x, double y) { return {x, y, {}, {}, {}, false}; }

chart::Guide level(std::string label, double y) { return {std::move(label), {bare_point(0.0, y)}}; }

void sort_by_x(std::vector<chart::Point>& points) {
  std::stable_sort(points.begin(), points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
}

void add_point(std::vector<chart::Series>& series, const std::string& name, chart::Mark mark, chart::Point point) {
  auto found = std::find_if(series.begin(), series.end(), [&](const chart::Series& s) { return s.name == name; });
  if (found == series.end()) found = series.insert(series.end(), {name, mark, {}});
  found->points.push_back(std::move(point));
}

}  // namespace gpubench::page
