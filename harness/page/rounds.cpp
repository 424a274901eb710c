// What the rounds of a run hold: the noise of their samples, and the device while they ran.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/core/text/quantity.h"
#include "harness/core/text/text_table.h"
#include "harness/measure/statistics.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

constexpr const char* places[] = {"Noisiest", "Second noisiest", "Third noisiest", "Fourth noisiest"};
constexpr std::size_t noisiest = std::size(places);
constexpr std::size_t most_dots = 240;  // of a chart
constexpr std::size_t fewest_samples = 6;
// Above this, one outlier would squeeze all other samples onto one line.
constexpr double logarithmic_from = 4.0;

double spread_of(const CaseRecord& record) {
  return (record.summary.p90_ns - record.summary.p10_ns) / record.summary.median_ns;
}

/// A round that counts: its number in the report, and its samples in multiples of the case's median.
struct Strip {
  int round = 0;
  std::vector<double> samples;
};

// By the device's clock, as the summary is; samples are of `batch` runs.
std::vector<Strip> strips_of(const CaseRecord& record) {
  std::vector<Strip> strips;
  const double whole = record.summary.median_ns * static_cast<double>(record.batch);
  for (std::size_t r = 0; r < record.rounds.size(); ++r) {
    if (!record.rounds[r].valid) continue;
    Strip strip{static_cast<int>(r) + 1, {}};
    for (const double ns : record.rounds[r].times.device_ns) strip.samples.push_back(ns / whole);
    strips.push_back(std::move(strip));
  }
  return strips;
}

std::size_t samples_of(const CaseRecord& record) {
  std::size_t samples = 0;
  for (const RoundRecord& round : record.rounds) samples += round.valid ? round.times.device_ns.size() : 0;
  return samples;
}

/// Whose strips are drawn, and why.
struct Choice {
  const CaseRecord* record = nullptr;
  std::string why;
};

std::vector<Choice> chosen(const Report& report) {
  std::vector<const CaseRecord*> cases;
  for (const CaseRecord& record : report.cases) {
    if (ranked(record) && record.batch > 0 && samples_of(record) >= fewest_samples) cases.push_back(&record);
  }
  std::stable_sort(cases.begin(), cases.end(),
                   [](const CaseRecord* a, const CaseRecord* b) { return spread_of(*a) > spread_of(*b); });
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < std::min(noisiest, cases.size()); ++i) choices.push_back({cases[i], places[i]});
  if (cases.size() > noisiest + 2) choices.push_back({cases[cases.size() / 2], "In the middle"});
  if (cases.size() > noisiest) choices.push_back({cases.back(), "Steadiest"});
  return choices;
}

Figure strip_figure(const Choice& choice, std::size_t number) {
  const CaseRecord& record = *choice.record;
  const std::vector<Strip> strips = strips_of(record);
  const std::size_t step = samples_of(record) / most_dots + 1;
  chart::PlotChart plot;
  plot.title = fmt::format("{}: {}/{} {}", choice.why, record.c.suite, record.c.workload, record.c.recipe);
  plot.x = {
      "round", chart::Scale::linear, chart::TickLabels::plain, "", 0.0, static_cast<double>(strips.back().round) + 1.0};
  plot.y = {"time of a run over the median", chart::Scale::linear, chart::TickLabels::percent, ""};
  chart::Series dots{"", chart::Mark::strip, {}};  // one series needs no legend
  DataTable table;
  table.columns = {{"round", true}, {"samples", true}, {"lowest", true}, {"median", true}, {"highest", true}};
  double lowest = 1.0;
  double highest = 1.0;
  for (const Strip& strip : strips) {
    std::vector<double> sorted = strip.samples;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.empty()) continue;
    lowest = std::min(lowest, sorted.front());
    highest = std::max(highest, sorted.back());
    for (std::size_t i = 0; i < strip.samples.size(); i += step)
      dots.points.push_back({static_cast<double>(strip.round), strip.samples[i], {}, {}, ""});
    table.rows.push_back({fmt::format("{}", strip.round), fmt::format("{}", sorted.size()),
                          percent_text(sorted.front()), percent_text(median(sorted)), percent_text(sorted.back())});
  }
  if (highest > logarithmic_from * lowest) plot.y.scale = chart::Scale::log10;
  plot.series.push_back(std::move(dots));
  plot.guides.push_back(level("median", 1.0));
  plot.description =
      fmt::format("Samples of {} by round, as shares of its median of {}; p10 to p90 is {} of it.", record.key(),
                  format_time_ns(record.summary.median_ns), percent_text(spread_of(record)));
  table.title = counted(table.rows.size(), "round");
  table.note = fmt::format("{}, median {}, p10 to p90 {}", record.key(), format_time_ns(record.summary.median_ns),
                           percent_text(spread_of(record)));
  return {fmt::format("strip-{}", number), std::move(plot), std::move(table)};
}

constexpr std::size_t most_readings = 240;  // of a chart, and rows of its table

/// Where a quantity is read, and how it is shown.
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
    return cases == 1 ? first->key()
                      : fmt::format("{} and {}", first->key(), counted(cases - 1, "case after it", "cases after it"));
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

/// How much one point represents, so that there are not too many.
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
  return {rounds <= most_readings, cases / most_readings + 1};
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

std::optional<Figure> quantity_figure(const TimeLine& line, const Quantity& quantity, const std::string& letter) {
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
std::optional<Figure> reasons_figure(const TimeLine& line, const std::string& letter) {
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

std::vector<Figure> noise_strips_of(const Side& side, std::size_t drawn) {
  std::vector<Figure> figures;
  for (const Choice& choice : chosen(*side.report)) figures.push_back(strip_figure(choice, ++drawn));
  return figures;
}

std::vector<Figure> device_over_time_of(const Side& side, std::size_t /*drawn*/) {
  const TimeLine line = time_line_of(*side.report);
  std::vector<Figure> figures;
  const auto add = [&](std::optional<Figure> figure) {
    if (figure) figures.push_back(std::move(*figure));
  };
  for (const Quantity& quantity : quantities) add(quantity_figure(line, quantity, side.letter));
  add(reasons_figure(line, side.letter));
  return figures;
}

void name_the_clocks(Section& section, const Material& material) {
  const bool clocks = std::any_of(material.sides.begin(), material.sides.end(),
                                  [](const Side& side) { return time_line_of(*side.report).has_clock; });
  if (!clocks) return;
  section.title = "Clocks, power and temperature";
  section.lead =
      "The rounds one after another, case by case (they were interleaved when they ran), bands are suites. "
      "A clock that falls, or a reason given for it, explains a slow case.";
}

}  // namespace gpubench::page
