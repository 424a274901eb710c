#include "harness/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/measure/statistics.h"
#include "harness/page/rates.h"
#include "harness/report/text_table.h"

namespace gpubench::page {
namespace {

constexpr std::size_t most_points = 240;  // of a chart, and rows of its table

/// Where a quantity is read, and how it is told.
struct Quantity {
  const char* key;
  const char* title;
  const char* axis;
  std::optional<Spread> (*of)(const RoundTelemetry&);
  bool from_zero;
};

std::optional<Spread> single(const std::optional<double>& value) {
  return value ? std::optional(Spread{*value, *value, *value}) : std::nullopt;
}

constexpr Quantity quantities[] = {
    {"sm-clock", "SM clock", "MHz", [](const RoundTelemetry& t) { return t.sm_mhz; }, false},
    {"memory-clock", "Memory clock", "MHz", [](const RoundTelemetry& t) { return t.memory_mhz; }, false},
    {"power", "Power", "W", [](const RoundTelemetry& t) { return single(t.power_w); }, true},
    {"temperature", "Temperature", "°C", [](const RoundTelemetry& t) { return single(t.temperature_c); }, false},
    {"pressure", "Waiting for a processor", "share of the round",
     [](const RoundTelemetry& t) { return single(t.cpu_pressure); }, true},
};

/// A round, all rounds of a case, or those of several cases, along the time line.
struct Stretch {
  double from_s = 0.0;
  double to_s = 0.0;
  const CaseRecord* first = nullptr;
  std::size_t cases = 0;
  std::vector<const RoundTelemetry*> readings;

  [[nodiscard]] std::string name() const {
    return cases == 1 ? first->id
                      : fmt::format("{} and {}", first->id, counted(cases - 1, "case after it", "cases after it"));
  }
};

struct TimeLine {
  std::vector<Stretch> stretches;
  std::vector<chart::Band> suites;
  double end_s = 0.0;
  bool has_clock = false;
};

void extend_band(std::vector<chart::Band>& bands, const std::string& label, double from, double to) {
  if (bands.empty() || bands.back().label != label) bands.push_back({label, from, from});
  bands.back().to = to;
}

bool was_read(const RoundRecord& round) {
  return round.telemetry && round.telemetry->window_s > 0.0 && std::isfinite(round.telemetry->window_s);
}

/// How much one point stands for, so that there are not too many.
struct Grain {
  bool rounds = false;            // a point per round
  std::size_t cases_a_point = 1;  // else per so many cases
};

Grain grain_of(const Report& report) {
  std::size_t rounds = 0;
  std::size_t cases = 0;
  for (const CaseRecord& record : report.cases) {
    const auto read = std::count_if(record.rounds.begin(), record.rounds.end(), was_read);
    rounds += static_cast<std::size_t>(read);
    cases += read > 0 ? 1 : 0;
  }
  return {rounds <= most_points, cases / most_points + 1};
}

TimeLine time_line_of(const Report& report) {
  const Grain grain = grain_of(report);
  TimeLine line;
  for (const CaseRecord& record : report.cases) {
    if (record.verdict != Verdict::pass) continue;
    bool first = true;
    for (const RoundRecord& round : record.rounds) {
      if (!was_read(round)) continue;
      const bool full = !line.stretches.empty() && line.stretches.back().cases == grain.cases_a_point;
      if (line.stretches.empty() || grain.rounds || (first && full))
        line.stretches.push_back({line.end_s, line.end_s, &record, 0, {}});
      Stretch& stretch = line.stretches.back();
      if (first || grain.rounds) ++stretch.cases;
      stretch.to_s = line.end_s + round.telemetry->window_s;
      stretch.readings.push_back(&*round.telemetry);
      line.has_clock = line.has_clock || round.telemetry->sm_mhz;
      extend_band(line.suites, record.c.suite, line.end_s, stretch.to_s);
      line.end_s = stretch.to_s;
      first = false;
    }
  }
  return line;
}

std::optional<Spread> together(const Stretch& stretch, const Quantity& quantity) {
  std::vector<double> middles;
  std::optional<Spread> all;
  for (const RoundTelemetry* t : stretch.readings) {
    const std::optional<Spread> one = quantity.of(*t);
    if (!one) continue;
    if (!all) all = *one;
    all->min = std::min(all->min, one->min);
    all->max = std::max(all->max, one->max);
    middles.push_back(one->median);
  }
  if (all) all->median = median(middles);
  return all;
}

std::optional<Figure> chart_of(const TimeLine& line, const Quantity& quantity, const std::string& letter) {
  chart::PlotChart plot;
  plot.title = quantity.title;
  plot.x = {"seconds of measuring", chart::Scale::linear, chart::TickLabels::plain, "", 0.0, line.end_s};
  plot.y = {quantity.axis, chart::Scale::linear, chart::TickLabels::plain, ""};
  const bool share = std::string_view(quantity.key) == "pressure";
  if (quantity.from_zero) plot.y.low = 0.0;
  if (share) {
    plot.y.labels = chart::TickLabels::percent;
    plot.y.high = 1.1;  // room for the names of the bands
  }
  plot.bands = line.suites;
  chart::Series series{"", chart::Mark::step, {}};  // one series needs no legend
  DataTable table;
  table.columns = {{"from, s", true}, {"case"}, {"lowest", true}, {"median", true}, {"highest", true}};
  const auto text = [&](double value) { return share ? percent_text(value) : fmt::format("{:.4g}", value); };
  for (const Stretch& stretch : line.stretches) {
    const std::optional<Spread> value = together(stretch, quantity);
    if (!value) continue;
    chart::Point point{
        stretch.from_s,
        value->median,
        {},
        {},
        fmt::format("{}: {}{}", stretch.name(), text(value->median), share ? "" : std::string(" ") + quantity.axis)};
    if (value->max > value->min) {
      point.low = value->min;
      point.high = value->max;
    }
    series.points.push_back(std::move(point));
    table.rows.push_back({fmt::format("{:.3g}", stretch.from_s), stretch.name(), text(value->min), text(value->median),
                          text(value->max)});
  }
  if (series.points.size() < 2) return std::nullopt;
  table.title = counted(table.rows.size(), "reading");
  plot.series.push_back(std::move(series));
  plot.description = fmt::format("{} over {:.0f} s of measuring, {}, with the suites as bands.", quantity.title,
                                 line.end_s, counted(table.rows.size(), "reading"));
  return Figure{slug(quantity.key + (" " + letter)), std::move(plot), std::move(table)};
}

// One row of marks per reason: when the clocks were held down, and by what.
std::optional<Figure> reasons_of(const TimeLine& line, const std::string& letter) {
  chart::PlotChart plot;
  plot.title = "Why clocks were lower";
  plot.x = {"seconds of measuring", chart::Scale::linear, chart::TickLabels::plain, "", 0.0, line.end_s};
  plot.y = {"rounds of the stretch", chart::Scale::linear, chart::TickLabels::percent, "", 0.0, 1.0};
  plot.bands = line.suites;
  DataTable table;
  table.columns = {{"from, s", true}, {"case"}, {"reasons"}, {"rounds run again", true}};
  for (const Stretch& stretch : line.stretches) {
    std::map<std::string, int> rounds;
    std::vector<std::string> words;
    int rejected = 0;
    for (const RoundTelemetry* t : stretch.readings) {
      rejected += t->rejected;
      for (const std::string& reason : t->reasons) {
        if (reason != clock_reason::idle) ++rounds[reason];
      }
    }
    for (const auto& [reason, count] : rounds) {
      const double share = static_cast<double>(count) / static_cast<double>(stretch.readings.size());
      add_point(plot.series, reason, chart::Mark::scatter,
                {0.5 * (stretch.from_s + stretch.to_s), share, {}, {}, reason + " in " + stretch.name()});
      words.push_back(reason);
    }
    if (!words.empty() || rejected > 0)
      table.rows.push_back(
          {fmt::format("{:.3g}", stretch.from_s), stretch.name(), joined(words), fmt::format("{}", rejected)});
  }
  if (plot.series.empty()) return std::nullopt;
  table.title = counted(table.rows.size(), "reading");
  plot.description = fmt::format("Share of rounds in which the device named a reason for lower clocks: {}.",
                                 counted(plot.series.size(), "reason"));
  return Figure{slug("reasons " + letter), std::move(plot), std::move(table)};
}

}  // namespace

Section device_over_time(std::span<const Side> sides) {
  Section section{"device",
                  "How busy the machine was",
                  "The rounds one after another, case by case (they were interleaved when they ran), bands are suites. "
                  "Where some task waited for a processor, times are longer than the device's own.",
                  {}};
  for (const Side& side : sides) {
    const TimeLine line = time_line_of(*side.report);
    FigureGroup group{side.letter.empty() ? "" : side.name, {}};
    for (const Quantity& quantity : quantities) {
      if (std::optional<Figure> figure = chart_of(line, quantity, side.letter))
        group.figures.push_back(std::move(*figure));
    }
    if (std::optional<Figure> figure = reasons_of(line, side.letter)) group.figures.push_back(std::move(*figure));
    if (line.has_clock) {
      section.title = "Clocks, power and temperature";
      section.lead =
          "The rounds one after another, case by case (they were interleaved when they ran), bands are suites. "
          "A clock that falls, or a named reason for that, explains a slow case.";
    }
    if (!group.figures.empty()) section.groups.push_back(std::move(group));
  }
  return section;
}

}  // namespace gpubench::page
