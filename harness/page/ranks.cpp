#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/measure/links.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

using Curve = Entries;

int units_of(const Entry& e) {
  if (e.record->derived.ranks && e.record->derived.ranks->units > 0) return e.record->derived.ranks->units;
  return e.side->report->run.devices.empty() ? 0 : e.side->report->run.devices.front().units;
}

std::vector<Curve> curves_of(std::span<const Entry> entries) {
  // The ranks are the last part of an id.
  std::vector<Curve> curves = split(entries, [](const Entry& e) {
    return e.side->letter + " " + e.record->key().substr(0, e.record->key().rfind("/x"));
  });
  std::erase_if(curves, [](const Curve& curve) { return curve.size() < 2; });
  for (Curve& curve : curves)
    std::sort(curve.begin(), curve.end(),
              [](const Entry& a, const Entry& b) { return a.record->c.ranks < b.record->c.ranks; });
  return curves;
}

double ideal(const Curve& curve, const Entry& e) {
  const int fewest = units_of(curve.front());
  return fewest > 0 ? static_cast<double>(units_of(e)) / fewest : 0.0;
}

double speed_up(const Curve& curve, const Entry& e) {
  return e.record->derived.headline / curve.front().record->derived.headline;
}

// Not set if a timing is unreliable.
std::optional<double> known_speed_up(const Curve& curve, const Entry& e) {
  const bool known = reliable(*curve.front().record) && reliable(*e.record);
  return known ? std::optional(speed_up(curve, e)) : std::nullopt;
}

// Not set for impossible values: efficiency above 1, or more communication hidden than there is, by more than the
// timings' intervals. Such a timing was disturbed.
std::optional<double> known_efficiency(const Curve& curve, const Entry& e) {
  const CaseRecord& record = *e.record;
  const CaseRecord& alone = *curve.front().record;
  if (!record.derived.ranks || !record.derived.ranks->efficiency || !known_speed_up(curve, e)) return std::nullopt;
  const double efficiency = *record.derived.ranks->efficiency;
  const double least = 1.0 - half_width(record.summary).value_or(1.0) - half_width(alone.summary).value_or(1.0);
  return efficiency * least <= 1.0 ? std::optional(efficiency) : std::nullopt;
}

// "unknown" for a measured but unreliable number; "-" for none.
std::string known_text(const std::optional<double>& known, bool measured) {
  return measured && !known ? "unknown" : percent_text(known);
}

std::vector<std::string> row_of(const Curve& curve, const Entry& e, const DimsText& dims) {
  const Derived& d = e.record->derived;
  const std::optional<double> times = known_speed_up(curve, e);
  return {dims.of(*e.record),
          series_name(e),
          fmt::format("{}", e.record->c.ranks),
          fmt::format("{}", units_of(e)),
          marked_rate(*e.record),
          times ? fmt::format("{:.3f}", *times) : "unknown",
          known_text(known_efficiency(curve, e), d.ranks && d.ranks->efficiency),
          known_text(reliable_exposed(*e.record), d.ranks && d.ranks->exposed_communication),
          percent_text(d.ranks ? std::optional(d.ranks->straggler) : std::nullopt)};
}

Figure speed_up_figure(const std::vector<Curve>& curves, const DimsText& dims) {
  const std::string workload = workload_name(curves.front().front());
  chart::PlotChart plot;
  plot.title = workload + ", speed-up";
  plot.x = {"ranks", chart::Scale::log2};
  plot.y = {"times the rate of the fewest ranks", chart::Scale::linear, chart::TickLabels::plain, "", 0.0};
  DataTable table;
  table.columns = {{"shape"},
                   {"precision"},
                   {"ranks", true},
                   {"units", true},
                   {"rate", true, curves.front().front().record->derived.headline_unit},
                   {"speed-up", true},
                   {"efficiency", true},
                   {"exposed communication", true},
                   {"slowest rank late by", true}};
  std::map<int, double> ideals;
  for (const Curve& curve : curves) {
    const std::string name = series_name(curve.front()) + " " + short_name(*curve.front().record, dims);
    for (const Entry& e : curve) {
      const int ranks = e.record->c.ranks;
      const double y = speed_up(curve, e);
      const bool sure = known_speed_up(curve, e).has_value();
      std::string note = fmt::format("{} on {}: {}{:.2f} times{}", name, counted(ranks, "rank"), sure ? "" : "~", y,
                                     sure ? "" : ", unreliable");
      add_point(plot.series, name, chart::Mark::line, {static_cast<double>(ranks), y, {}, {}, std::move(note), !sure});
      table.rows.push_back(row_of(curve, e, dims));
      if (const double best = ideal(curve, e); best > 0.0) ideals[ranks] = std::max(ideals[ranks], best);
    }
  }
  if (ideals.size() > 1) {
    plot.guides.push_back({"ideal", {}});
    for (const auto& [ranks, times] : ideals) plot.guides.front().points.push_back(bare_point(ranks, times));
  }
  table.title = counted(table.rows.size(), "case");
  if (!dims.common().empty()) table.note = "all: " + dims.common();
  plot.description =
      fmt::format("Rate of {} on several ranks as a multiple of that on the fewest, {}, with the ideal line.", workload,
                  counted(curves.size(), "curve"));
  return {slug(workload + " speed-up"), std::move(plot), std::move(table)};
}

Figure efficiency_figure(const std::vector<Curve>& curves, const DimsText& dims) {
  const std::string workload = workload_name(curves.front().front());
  chart::PlotChart plot;
  plot.title = workload + ", efficiency";
  plot.x = {"ranks", chart::Scale::log2};
  plot.y = {"rate per unit against one rank", chart::Scale::linear, chart::TickLabels::percent, "", 0.0};
  plot.guides = {level("ideal", 1.0)};
  plot.description = fmt::format("Rate per processor or SM of {} against that of one rank; 100% is ideal.", workload);
  DataTable table{"", {{"shape"}, {"precision"}, {"ranks", true}, {"efficiency", true}}, {}};
  for (const Curve& curve : curves) {
    const std::string name = series_name(curve.front()) + " " + short_name(*curve.front().record, dims);
    for (const Entry& e : curve) {
      const int ranks = e.record->c.ranks;
      // One rank is the base of the comparison.
      const std::optional<double> efficiency =
          ranks == 1 && reliable(*e.record) ? std::optional(1.0) : known_efficiency(curve, e);
      if (!efficiency) continue;
      std::string note = fmt::format("{} on {}: {}", name, counted(ranks, "rank"), percent_text(efficiency));
      add_point(plot.series, name, chart::Mark::line,
                {static_cast<double>(ranks), *efficiency, {}, {}, std::move(note)});
      table.rows.push_back({dims.of(*e.record), series_name(e), fmt::format("{}", ranks), percent_text(efficiency)});
    }
  }
  std::erase_if(plot.series, [](const chart::Series& s) { return s.points.size() < 2; });
  table.title = counted(table.rows.size(), "case");
  return {slug(workload + " efficiency"), std::move(plot), std::move(table)};
}

constexpr std::size_t messages_for_a_curve = 3;

double message_of(const Entry& e) { return e.record->derived.collective->message_bytes; }

bool has_message_curve(std::span<const Entry> collective) {
  std::set<double> sizes;
  for (const Entry& e : collective) sizes.insert(message_of(e));
  return sizes.size() >= messages_for_a_curve;
}

std::string message_text(const Entry& e) {
  static constexpr const char* prefixes[] = {"", "Ki", "Mi", "Gi", "Ti"};
  double bytes = message_of(e);
  std::size_t prefix = 0;
  for (; bytes >= 1024.0 && prefix + 1 < std::size(prefixes); ++prefix) bytes /= 1024.0;
  return fmt::format("{:.4g} {}B", bytes, prefixes[prefix]);
}

// Without modes, which are in the title.
std::string recipe_on_ranks(const Entry& e) {
  return fmt::format("{}, {}", recipe_name(e), counted(static_cast<std::size_t>(e.record->c.ranks), "rank"));
}

std::string modes_of(const Entry& e) {
  std::string text;
  for (const std::string& mode : e.record->c.modes) text += " " + mode;
  return text;
}

std::string collective_name(const Entry& e) { return workload_name(e) + modes_of(e); }

std::string bus_rate(const Entry& e) {
  return marked_rate(*e.record, e.record->derived.collective->bus_bytes_per_s, "B/s");
}

DataTable collectives_table(std::span<const Entry> entries, std::vector<Column> columns) {
  const std::vector<Column> more{
      {{"message", true, "B"}, message_text},
      precision_column(),
      ranks_column(),
      {{"busbw", true, "B/s"}, bus_rate},
      {{"algbw", true, "B/s"},
       [](const Entry& e) {
         return marked_rate(*e.record, e.record->derived.collective->algorithm_bytes_per_s, "B/s");
       }},
      time_column(),
      interval_column(),
      {{"of the link", true}, [](const Entry& e) {
         const std::optional<PeakShare>& peak = e.record->derived.peak;
         return percent_text(peak && peak->limit == "link" && reliable(*e.record) ? peak->of_peak : std::nullopt);
       }}};
  columns.insert(columns.end(), more.begin(), more.end());
  return table_of(entries, columns);
}

chart::Point bus_point(const Entry& e, std::string note) {
  chart::Point point = rate_point(*e.record, message_of(e), std::move(note));
  // The interval of the time, as a share of the rate.
  const double share = e.record->derived.collective->bus_bytes_per_s / point.y;
  point.y *= share;
  if (point.low) point.low = *point.low * share;
  if (point.high) point.high = *point.high * share;
  return point;
}

// A chart per mode (in place, one by one); it compares precisions and numbers of ranks.
std::vector<Entries> collectives_of(std::span<const Side> sides) {
  std::vector<Entries> all;
  const Entries entries = entries_of(sides, [](const CaseRecord& r) { return r.derived.collective.has_value(); });
  for (const Entries& workload : by_workload(entries)) {
    for (Entries& of_modes : split(workload, modes_of)) all.push_back(std::move(of_modes));
  }
  return all;
}

Figure bus_curve(std::span<const Entry> collective) {
  const std::string title = collective_name(collective.front());
  chart::PlotChart plot;
  plot.title = title;
  plot.x = {"message", chart::Scale::log2, chart::TickLabels::bytes};
  plot.y = rate_axis("B/s", chart::Scale::log10, "bus bandwidth");
  plot.series = series_of(collective, chart::Mark::line, recipe_on_ranks, [](const Entry& e) {
    return bus_point(e, fmt::format("{} · {}: {}", message_text(e), recipe_on_ranks(e), bus_rate(e)));
  });
  for (chart::Series& series : plot.series) {
    if (series.points.size() == 1) series.mark = chart::Mark::scatter;
  }
  for (const Entries& of_side : split(collective, [](const Entry& e) { return e.side->letter; })) {
    const Side& side = *of_side.front().side;
    if (side.ceilings.link)
      plot.guides.push_back(level(side.letter.empty() ? "link" : side.letter + " link", side.ceilings.link->value));
  }
  plot.description = fmt::format("Bus bandwidth of {} against message size, {}, both axes logarithmic.", title,
                                 counted(plot.series.size(), "series", "series"));
  return {slug("busbw " + title), std::move(plot), collectives_table(collective, {})};
}

Figure bus_bars(std::span<const Entry> cases) {
  chart::BarChart chart{"Measured at one or two sizes",
                        fmt::format("Bus bandwidth of {}, a bar each.", counted(cases.size(), "case")),
                        rate_axis("B/s", chart::Scale::linear, "bus bandwidth"),
                        {}};
  for (const Entries& collective : split(cases, collective_name)) {
    chart.groups.push_back(bar_group(collective_name(collective.front()), collective, [](const Entry& e) {
      const std::optional<KnownCeiling>& link = e.side->ceilings.link;
      return bar_of(bus_point(e, ""), message_text(e) + " " + recipe_on_ranks(e), bus_rate(e), e.record->key(),
                    link ? std::optional(link->value) : std::nullopt);
    }));
  }
  return {"busbw-few-sizes", std::move(chart), collectives_table(cases, {{{"collective"}, collective_name}})};
}

}  // namespace

std::vector<Entries> workloads_on_several_ranks(std::span<const Side> sides) {
  const Entries entries = entries_of(sides, [](const CaseRecord& r) { return !r.derived.collective; });
  return split(concatenated(curves_of(entries)), workload_name);
}

void draw_scaling(std::span<const Entry> workload, std::vector<Figure>& figures) {
  const DimsText dims(workload);
  const std::vector<Curve> curves = curves_of(workload);
  figures.push_back(speed_up_figure(curves, dims));
  const bool more_units =
      std::any_of(curves.begin(), curves.end(), [](const Curve& curve) { return ideal(curve, curve.back()) > 1.0; });
  if (!more_units) return;  // efficiency would repeat the speed-up
  Figure efficiency = efficiency_figure(curves, dims);
  if (!std::get<chart::PlotChart>(efficiency.chart).series.empty()) figures.push_back(std::move(efficiency));
}

std::vector<Entries> collectives_by_curve(std::span<const Side> sides) {
  std::vector<Entries> charts = collectives_of(sides);
  const auto few = std::stable_partition(charts.begin(), charts.end(), has_message_curve);
  const Entries of_few_sizes = concatenated({few, charts.end()});
  charts.erase(few, charts.end());
  if (!of_few_sizes.empty()) charts.push_back(of_few_sizes);
  return charts;
}

void draw_bus(std::span<const Entry> cases, std::vector<Figure>& figures) {
  const bool one = split(cases, collective_name).size() == 1;
  figures.push_back(one && has_message_curve(cases) ? bus_curve(cases) : bus_bars(cases));
}

std::vector<Figure> links_of(const Side& side) {
  std::vector<Figure> figures;
  const std::vector<DeviceInfo>& devices = side.report->run.devices;
  const std::vector<RankPlace> places = devices.empty() ? std::vector<RankPlace>{} : rank_places(devices.front());
  for (const LinkMap& map : link_maps(side.report->cases)) {
    chart::HeatMap chart;
    chart.title = map.name;
    DataTable table{
        "", {{"ranks"}, {"time", true, "s"}, {"rate each way", true, "B/s"}, {"behind", true}, {"rounds behind"}}, {}};
    for (int a = 0; a < map.ranks; ++a) {
      chart.columns.push_back(fmt::format("{}", a));
      chart.rows.push_back("rank " + rank_text(a, places));
      std::vector<chart::HeatCell>& row = chart.cells.emplace_back();
      for (int b = 0; b < map.ranks; ++b) {
        const Link* link = map.between(a, b);
        if (link == nullptr) {
          row.emplace_back();
          continue;
        }
        const Lateness& lateness = link->lateness;
        const char* const unsure = lateness.unreliable ? "~" : "";
        const std::string rate = unsure + format_quantity(map.rate(link->median_ns), "B/s");
        const std::string rounds = fmt::format("{} of {}", lateness.rounds_late, lateness.rounds);
        row.push_back({fmt::format("{}{:.0f}%", unsure, 100.0 / (1.0 + lateness.late)),
                       std::clamp(2.0 * lateness.late, 0.0, 1.0), lateness.is_reliable(),
                       fmt::format("ranks {} and {}: {} each way, {:+.1f}%, behind in {} rounds", rank_text(a, places),
                                   rank_text(b, places), rate, 100.0 * lateness.late, rounds)});
        if (a < b)
          table.rows.push_back({fmt::format("{} and {}", rank_text(a, places), rank_text(b, places)),
                                unsure + format_time_ns(link->median_ns), rate, percent_text(lateness.late), rounds});
      }
    }
    table.title = counted(map.links.size(), "link");
    std::string late;
    for (const LatePart& part : late_parts(map, places))
      late += fmt::format(" {}: {} behind.", part.name, percent_text(part.lateness.late));
    chart.description =
        fmt::format("Ranks by ranks, each cell the rate of a link as a share of the median one's, {}.{}",
                    format_quantity(map.rate(map.middle_ns), "B/s"), late.empty() ? " None is surely behind." : late);
    figures.push_back({slug(map.name), std::move(chart), std::move(table)});
  }
  return figures;
}

}  // namespace gpubench::page
