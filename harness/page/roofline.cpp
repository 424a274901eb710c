#include <fmt/format.h>

#include <algorithm>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

double intensity_of(const CaseRecord& record) { return record.derived.flop / record.derived.bytes; }

bool has_intensity(const CaseRecord& record) {
  return record.c.ranks == 1 && record.derived.flop > 0.0 && record.derived.bytes > 0.0;
}

struct Roof {
  std::string kind;
  double memory = 0.0;
  double arithmetic = 0.0;

  [[nodiscard]] double ridge() const { return arithmetic / memory; }
  [[nodiscard]] double at(double intensity) const { return std::min(intensity * memory, arithmetic); }
};

std::vector<Roof> roofs_of(const Entry& e) {
  const KnownCeilings& known = e.side->ceilings;
  const std::string& recipe = e.record->c.recipe;
  std::vector<Roof> roofs;
  const auto published = known.published.find(recipe);
  if (published != known.published.end() && known.published_memory)
    roofs.push_back({"published", known.published_memory->value, published->second.value});
  const auto measured = known.measured.find(recipe);
  if (measured != known.measured.end() && known.measured_memory)
    roofs.push_back({"measured", known.measured_memory->value, measured->second.value});
  return roofs;
}

// From the memory slope over the ridge to the flat part.
chart::Guide guide_of(const Roof& roof, std::span<const Entry> entries) {
  double least = roof.ridge();
  double most = roof.ridge();
  for (const Entry& e : entries) {
    least = std::min(least, intensity_of(*e.record));
    most = std::max(most, intensity_of(*e.record));
  }
  least /= 2.0;
  most *= 2.0;
  return {
      fmt::format("{}: {}, {}", roof.kind, format_quantity(roof.arithmetic, "FLOP/s"),
                  format_quantity(roof.memory, "B/s")),
      {bare_point(least, roof.at(least)), bare_point(roof.ridge(), roof.arithmetic), bare_point(most, roof.at(most))}};
}

// Why a case can be above the roof; empty if its interval reaches the roof.
std::string above_peak_reason(const CaseRecord& record, const Roof& roof) {
  const double low = 1.0 - half_width(record.summary).value_or(1.0);
  if (!(record.derived.flop_per_s * low > roof.at(intensity_of(record)))) return "";
  return intensity_of(record) < roof.ridge() ? "its data stay in a cache, or are updated in place"
                                             : "no matrix product of this run was as fast";
}

std::string flop_rate(const Entry& e) { return marked_rate(*e.record, e.record->derived.flop_per_s, "FLOP/s"); }

DataTable roof_table(std::span<const Entry> entries, const Roof& roof) {
  const auto intensity = [](const Entry& e) { return intensity_of(*e.record); };
  return table_of(
      entries,
      std::vector<Column>{
          {{"FLOP per byte", true}, [&](const Entry& e) { return fmt::format("{:.3g}", intensity(e)); }},
          {{"rate", true, "FLOP/s"}, flop_rate},
          {{"bandwidth", true, "B/s"},
           [](const Entry& e) { return marked_rate(*e.record, e.record->derived.bytes_per_s, "B/s"); }},
          {{"of the " + roof.kind + " roof", true},
           [&](const Entry& e) {
             const double share = e.record->derived.flop_per_s / roof.at(intensity(e));
             return percent_text(reliable(*e.record) ? std::optional(share) : std::nullopt);
           }},
          {{"bound by"}, [&](const Entry& e) { return intensity(e) < roof.ridge() ? "memory" : "arithmetic"; }},
          case_column(),
          {{"why above"}, [&](const Entry& e) { return above_peak_reason(*e.record, roof); }}});
}

}  // namespace

std::vector<Entries> recipes_with_a_roof(std::span<const Side> sides) {
  std::vector<Entries> charts = split(entries_of(sides, has_intensity), recipe_name);
  std::erase_if(charts, [](const Entries& chart) { return chart.size() < 2 || roofs_of(chart.front()).empty(); });
  return charts;
}

void draw_roofline(std::span<const Entry> entries, std::vector<Figure>& figures) {
  const std::string& letter = entries.front().side->letter;
  const std::string& recipe = entries.front().record->c.recipe;
  const std::vector<Roof> roofs = roofs_of(entries.front());
  chart::PlotChart plot;
  plot.title = letter.empty() ? recipe : letter + ": " + recipe;
  plot.x = {"arithmetic intensity, FLOP per byte", chart::Scale::log10};
  plot.y = rate_axis("FLOP/s", chart::Scale::log10);
  const auto suite_of = [](const Entry& e) { return e.record->c.suite; };
  plot.series = series_of(entries, chart::Mark::scatter, suite_of, [&](const Entry& e) -> chart::Point {
    std::string note = fmt::format("{} {}: {}", workload_name(e), short_name(*e.record), flop_rate(e));
    const std::string why = above_peak_reason(*e.record, roofs.front());
    if (!why.empty()) note += fmt::format(", above the {} roof: {}", roofs.front().kind, why);
    return {intensity_of(*e.record), e.record->derived.flop_per_s, {}, {}, note, !reliable(*e.record)};
  });
  for (const Roof& roof : roofs) plot.guides.push_back(guide_of(roof, entries));
  plot.description = fmt::format("FLOP/s of {} in {} against FLOP per byte, both axes logarithmic, under {}.",
                                 counted(entries.size(), "case"), recipe, counted(plot.guides.size(), "roof"));
  figures.push_back({slug(recipe + " " + letter), std::move(plot), roof_table(entries, roofs.front())});
}

void count_cases_above_the_roof(Html& html, const Material& material) {
  std::size_t above = 0;
  for (const Entries& chart : recipes_with_a_roof(material.sides)) {
    const Roof roof = roofs_of(chart.front()).front();
    above += static_cast<std::size_t>(std::count_if(
        chart.begin(), chart.end(), [&](const Entry& e) { return !above_peak_reason(*e.record, roof).empty(); }));
  }
  if (above == 0) return;
  html.element(
          "p",
          fmt::format(
              "{} above it, for the reasons in the data below each chart: only compulsory bytes are counted, and data "
              "that stay in a cache or are updated in place need not pass through memory at the rate of a copy.",
              counted(above, "case is", "cases are")),
          "class=\"lead\"")
      .raw("\n");
}

}  // namespace gpubench::page
