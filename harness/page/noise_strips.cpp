#include "harness/page/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/measure/statistics.h"
#include "harness/page/rates.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

constexpr const char* places[] = {"Noisiest", "Second noisiest", "Third noisiest", "Fourth noisiest"};
constexpr std::size_t noisiest = std::size(places);
constexpr std::size_t most_dots = 240;  // of a chart
constexpr std::size_t fewest_samples = 6;
// Above this, one far sample would press all others onto one line.
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

Figure figure_of(const Choice& choice, std::size_t number) {
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
  plot.description = fmt::format("Samples of {} by round, as shares of its median of {}; p10 to p90 is {} of it.",
                                 record.id, format_time_ns(record.summary.median_ns), percent_text(spread_of(record)));
  table.title = counted(table.rows.size(), "round");
  table.note = fmt::format("{}, median {}, p10 to p90 {}", record.id, format_time_ns(record.summary.median_ns),
                           percent_text(spread_of(record)));
  return {fmt::format("strip-{}", number), std::move(plot), std::move(table)};
}

}  // namespace

Section noise_strips(std::span<const Side> sides) {
  Section section{
      "noise",
      "Noise",
      "Every dot is a sample, every column a round; 100% is the case's median. One tight band is steady, two "
      "bands are two modes, a slope is a drift.",
      {}};
  std::size_t number = 0;
  for (const Side& side : sides) {
    FigureGroup group{side.letter.empty() ? "" : side.name, {}};
    for (const Choice& choice : chosen(*side.report)) group.figures.push_back(figure_of(choice, ++number));
    if (!group.figures.empty()) section.groups.push_back(std::move(group));
  }
  return section;
}

}  // namespace gpubench::page
