#include "harness/page/figure.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"

namespace gpubench::page {
namespace {

bool any(std::span<const Entry> entries, bool (*holds)(const CaseRecord&)) {
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& e) { return holds(*e.record); });
}

bool knows_peak(const CaseRecord& record) { return record.derived.peak && record.derived.peak->of_peak; }

// Unreliable rates have no share.
std::string of_peak(const CaseRecord& record) {
  return percent_text(knows_peak(record) && reliable(record) ? record.derived.peak->of_peak : std::nullopt);
}

}  // namespace

Column case_column() {
  return {{"case"}, [](const Entry& e) { return e.record->key(); }};
}
Column precision_column() { return {{"precision"}, series_name}; }
Column ranks_column() {
  return {{"ranks", true}, [](const Entry& e) { return fmt::format("{}", e.record->c.ranks); }};
}
Column time_column() {
  return {{"time", true, "s"}, [](const Entry& e) { return format_time_ns(e.record->summary.median_ns); }};
}
Column interval_column() {
  return {{"±95%", true}, [](const Entry& e) {
            const Summary& s = e.record->summary;
            return format_interval(s.median_ns, s.ci95_low_ns, s.ci95_high_ns);
          }};
}

DataTable table_of(std::span<const Entry> entries, std::span<const Column> columns) {
  DataTable table{counted(entries.size(), "case"), {}, {}};
  for (const Column& column : columns) table.columns.push_back(column.head);
  for (const Entry& entry : entries) {
    std::vector<std::string>& row = table.rows.emplace_back();
    for (const Column& column : columns) row.push_back(column.cell(entry));
  }
  return table;
}

DataTable rates_table(std::span<const Entry> entries, const DimsText& dims, std::vector<Column> columns) {
  const std::string unit = entries.empty() ? "" : entries.front().record->derived.headline_unit;
  columns.push_back({{"shape"}, [&](const Entry& e) { return dims.of(*e.record); }});
  if (any(entries, [](const CaseRecord& r) { return !r.c.label.empty(); }))
    columns.push_back({{"of"}, [](const Entry& e) { return e.record->c.label; }});
  columns.push_back(precision_column());
  if (any(entries, [](const CaseRecord& r) { return r.c.ranks > 1; })) columns.push_back(ranks_column());
  columns.push_back({{"rate", true, unit}, [](const Entry& e) { return marked_rate(*e.record); }});
  columns.push_back(time_column());
  columns.push_back(interval_column());
  if (any(entries, knows_peak))
    columns.push_back({{"of peak", true}, [](const Entry& e) { return of_peak(*e.record); }});
  DataTable table = table_of(entries, columns);
  if (!dims.common().empty()) table.note = "all: " + dims.common();
  return table;
}

std::vector<chart::Series> series_of(std::span<const Entry> entries, chart::Mark mark,
                                     const std::function<std::string(const Entry&)>& name,
                                     const std::function<chart::Point(const Entry&)>& point) {
  std::vector<chart::Series> all;
  for (const Entries& part : split(entries, name)) {
    chart::Series series{name(part.front()), mark, {}};
    for (const Entry& entry : part) series.points.push_back(point(entry));
    std::stable_sort(series.points.begin(), series.points.end(),
                     [](const chart::Point& a, const chart::Point& b) { return a.x < b.x; });
    all.push_back(std::move(series));
  }
  return all;
}

void add_point(std::vector<chart::Series>& series, const std::string& name, chart::Mark mark, chart::Point point) {
  auto found = std::find_if(series.begin(), series.end(), [&](const chart::Series& s) { return s.name == name; });
  if (found == series.end()) found = series.insert(series.end(), {name, mark, {}});
  found->points.push_back(std::move(point));
}

chart::Bar bar_of(const chart::Point& point, std::string label, std::string text, std::string note,
                  std::optional<double> limit) {
  return {std::move(label), point.y, point.low, point.high, limit, std::move(text), std::move(note), point.doubtful};
}

chart::BarGroup bar_group(std::string title, std::span<const Entry> entries,
                          const std::function<chart::Bar(const Entry&)>& bar) {
  chart::BarGroup group{std::move(title), {}};
  for (const Entry& entry : entries) group.bars.push_back(bar(entry));
  return group;
}

WorkAxis work_axis(std::span<const Entry> workload) {
  const bool idle = any(workload, [](const CaseRecord& r) { return !(r.derived.flop > 0.0); });
  const bool bytes = workload.front().record->derived.headline_unit == "B/s" || idle;
  return {
      {"work of a run", chart::Scale::log10, chart::TickLabels::si, bytes ? "B" : "FLOP"},
      bytes ? [](const CaseRecord& r) { return r.derived.bytes; } : [](const CaseRecord& r) { return r.derived.flop; }};
}

chart::Axis rate_axis(const std::string& unit, chart::Scale scale, const std::string& title) {
  return {title, scale, chart::TickLabels::si, unit};
}

chart::Point rate_point(const CaseRecord& record, double x, std::string note) {
  const Summary& s = record.summary;
  chart::Point point{x, record.derived.headline, {}, {}, std::move(note), timing_unreliable(s)};
  // The upper end of the time gives the lower end of the rate.
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

chart::Point bare_point(double x, double y) { return {x, y, {}, {}, {}, false}; }

chart::Guide level(std::string label, double y) { return {std::move(label), {bare_point(0.0, y)}}; }

}  // namespace gpubench::page
