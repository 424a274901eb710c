// scaling_curves(): see several_ranks.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "harness/core/reliability.h"
#include "harness/page/rates.h"
#include "harness/page/sections.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

/// One case at several rank counts, fewest first.
struct Curve {
  const Side* side = nullptr;
  std::vector<const CaseRecord*> records;
};

int units_of(const Side& side, const CaseRecord& record) {
  if (record.derived.ranks && record.derived.ranks->units > 0) return record.derived.ranks->units;
  return side.report->run.devices.empty() ? 0 : side.report->run.devices.front().units;
}

std::vector<Curve> curves_of(const Side& side) {
  std::map<std::string, Curve> by_case;
  std::vector<std::string> order;
  for (const CaseRecord& record : side.report->cases) {
    if (!ranked(record) || record.derived.collective) continue;
    const std::string key = record.id.substr(0, record.id.rfind("/x"));  // the ranks are an id's last part
    Curve& curve = by_case[key];
    if (curve.records.empty()) order.push_back(key);
    curve.side = &side;
    curve.records.push_back(&record);
  }
  std::vector<Curve> curves;
  for (const std::string& key : order) {
    Curve& curve = by_case[key];
    std::sort(curve.records.begin(), curve.records.end(),
              [](const CaseRecord* a, const CaseRecord* b) { return a->c.ranks < b->c.ranks; });
    if (curve.records.size() > 1) curves.push_back(std::move(curve));
  }
  return curves;
}

double ideal(const Curve& curve, const CaseRecord& record) {
  const int fewest = units_of(*curve.side, *curve.records.front());
  return fewest > 0 ? static_cast<double>(units_of(*curve.side, record)) / fewest : 0.0;
}

bool more_units(const std::vector<Curve>& curves) {
  return std::any_of(curves.begin(), curves.end(),
                     [](const Curve& curve) { return ideal(curve, *curve.records.back()) > 1.0; });
}

double speed_up(const Curve& curve, const CaseRecord& record) {
  return record.derived.headline / curve.records.front()->derived.headline;
}

// Nothing where one of the two timings is unreliable.
std::optional<double> known_speed_up(const Curve& curve, const CaseRecord& record) {
  const bool known = reliable(*curve.records.front()) && reliable(record);
  return known ? std::optional(speed_up(curve, record)) : std::nullopt;
}

// Ranks cannot do more than their share, nor hide more than all of their communication: what is beyond that by more
// than the intervals of its timings was disturbed, and is not told as a number.
std::optional<double> known_efficiency(const Curve& curve, const CaseRecord& record) {
  const CaseRecord& alone = *curve.records.front();
  if (!record.derived.ranks || !record.derived.ranks->efficiency || !known_speed_up(curve, record)) return std::nullopt;
  const double efficiency = *record.derived.ranks->efficiency;
  const double least = 1.0 - half_width(record.summary).value_or(1.0) - half_width(alone.summary).value_or(1.0);
  return efficiency * least <= 1.0 ? std::optional(efficiency) : std::nullopt;
}

std::optional<double> known_exposed(const CaseRecord& record) {
  if (!record.derived.ranks || !record.derived.ranks->exposed_communication || !reliable(record)) return std::nullopt;
  const double exposed = *record.derived.ranks->exposed_communication;
  // The step without its collectives is timed about as surely as the step.
  const double uncertainty = 2.0 * half_width(record.summary).value_or(0.0) * (1.0 - exposed);
  return exposed >= -uncertainty ? std::optional(exposed) : std::nullopt;
}

// "unknown" for a number that is there and has no meaning; "-" where there is none.
std::string known_text(const std::optional<double>& known, bool measured) {
  return measured && !known ? "unknown" : percent_text(known);
}

std::string curve_name(const Curve& curve, const DimsText& dims) {
  const CaseRecord& first = *curve.records.front();
  return series_name({curve.side, &first}) + " " + short_name(first, dims);
}

void add_row(DataTable& table, const Curve& curve, const CaseRecord& record, const DimsText& dims) {
  const Derived& d = record.derived;
  const std::optional<double> times = known_speed_up(curve, record);
  table.rows.push_back({dims.of(record), series_name({curve.side, &record}), fmt::format("{}", record.c.ranks),
                        fmt::format("{}", units_of(*curve.side, record)), marked_rate(record),
                        times ? fmt::format("{:.3f}", *times) : "unknown",
                        known_text(known_efficiency(curve, record), d.ranks && d.ranks->efficiency),
                        known_text(known_exposed(record), d.ranks && d.ranks->exposed_communication),
                        percent_text(d.ranks ? std::optional(d.ranks->straggler) : std::nullopt)});
}

chart::Axis ranks_axis() { return {"ranks", chart::Scale::log2, chart::TickLabels::plain, ""}; }

Figure speed_up_figure(const std::string& workload, const std::vector<Curve>& curves, const DimsText& dims) {
  chart::PlotChart plot;
  plot.title = workload + ", speed-up";
  plot.x = ranks_axis();
  plot.y = {"times the rate of the fewest ranks", chart::Scale::linear, chart::TickLabels::plain, "", 0.0};
  DataTable table;
  table.columns = {{"shape"},
                   {"precision"},
                   {"ranks", true},
                   {"units", true},
                   {"rate", true, curves.front().records.front()->derived.headline_unit},
                   {"speed-up", true},
                   {"efficiency", true},
                   {"exposed communication", true},
                   {"slowest rank late by", true}};
  std::map<int, double> ideals;
  for (const Curve& curve : curves) {
    for (const CaseRecord* record : curve.records) {
      add_row(table, curve, *record, dims);
      const double y = speed_up(curve, *record);
      const bool sure = known_speed_up(curve, *record).has_value();
      add_point(plot.series, curve_name(curve, dims), chart::Mark::line,
                {static_cast<double>(record->c.ranks),
                 y,
                 {},
                 {},
                 fmt::format("{} on {}: {}{:.2f} times{}", curve_name(curve, dims), counted(record->c.ranks, "rank"),
                             sure ? "" : "~", y, sure ? "" : ", unreliable"),
                 !sure});
      const double best = ideal(curve, *record);
      if (best > 0.0) ideals[record->c.ranks] = std::max(ideals[record->c.ranks], best);
    }
  }
  if (ideals.size() > 1) {
    chart::Guide line{"ideal", {}};
    for (const auto& [ranks, times] : ideals) line.points.push_back(bare_point(ranks, times));
    plot.guides.push_back(std::move(line));
  }
  table.title = counted(table.rows.size(), "case");
  if (!dims.common().empty()) table.note = "all: " + dims.common();
  plot.description =
      fmt::format("Rate of {} on several ranks as a multiple of that on the fewest, {}, with the ideal line.", workload,
                  counted(curves.size(), "curve"));
  return {slug(workload + " speed-up"), std::move(plot), std::move(table)};
}

Figure efficiency_figure(const std::string& workload, const std::vector<Curve>& curves, const DimsText& dims) {
  chart::PlotChart plot;
  plot.title = workload + ", efficiency";
  plot.x = ranks_axis();
  plot.y = {"rate per unit against one rank", chart::Scale::linear, chart::TickLabels::percent, "", 0.0};
  DataTable table{"", {{"shape"}, {"precision"}, {"ranks", true}, {"efficiency", true}}, {}};
  for (const Curve& curve : curves) {
    for (const CaseRecord* record : curve.records) {
      // One rank is what the others are held against.
      const std::optional<double> efficiency =
          record->c.ranks == 1 && reliable(*record) ? std::optional(1.0) : known_efficiency(curve, *record);
      if (!efficiency) continue;
      add_point(plot.series, curve_name(curve, dims), chart::Mark::line,
                {static_cast<double>(record->c.ranks),
                 *efficiency,
                 {},
                 {},
                 fmt::format("{} on {}: {}", curve_name(curve, dims), counted(record->c.ranks, "rank"),
                             percent_text(efficiency))});
      table.rows.push_back({dims.of(*record), series_name({curve.side, record}), fmt::format("{}", record->c.ranks),
                            percent_text(efficiency)});
    }
  }
  std::erase_if(plot.series, [](const chart::Series& s) { return s.points.size() < 2; });
  plot.guides = {level("ideal", 1.0)};
  table.title = counted(table.rows.size(), "case");
  plot.description = fmt::format("Rate per processor or SM of {} against that of one rank; 100% is ideal.", workload);
  return {slug(workload + " efficiency"), std::move(plot), std::move(table)};
}

}  // namespace

Section scaling_curves(std::span<const Side> sides) {
  Section section{
      "scaling",
      "Scaling over ranks",
      "Weak scaling: each rank has the same work. The dashed line is as much faster as there are more "
      "processors or SMs; efficiency is the rate of each of them against one rank. What rests on an unreliable timing, "
      "or is impossible beyond its own uncertainty (an efficiency above 100%, exposed communication below "
      "0%), is unknown.",
      {{}}};
  std::vector<std::pair<std::string, std::vector<Curve>>> workloads;
  for (const Side& side : sides) {
    for (Curve& curve : curves_of(side)) {
      const std::string name = curve.records.front()->c.suite + "/" + curve.records.front()->c.workload;
      auto same = std::find_if(workloads.begin(), workloads.end(), [&](const auto& one) { return one.first == name; });
      if (same == workloads.end()) same = workloads.insert(workloads.end(), {name, {}});
      same->second.push_back(std::move(curve));
    }
  }
  for (const auto& [name, curves] : workloads) {
    std::vector<Entry> entries;
    for (const Curve& curve : curves) entries.push_back({curve.side, curve.records.front()});
    const DimsText dims(entries);
    section.groups[0].figures.push_back(speed_up_figure(name, curves, dims));
    if (!more_units(curves)) continue;  // then efficiency is the speed-up once more
    Figure efficiency = efficiency_figure(name, curves, dims);
    if (!std::get<chart::PlotChart>(efficiency.chart).series.empty())
      section.groups[0].figures.push_back(std::move(efficiency));
  }
  return section;
}

}  // namespace gpubench::page
