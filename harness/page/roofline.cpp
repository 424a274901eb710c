#include "harness/page/roofline.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/page/rates.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

double intensity_of(const CaseRecord& record) { return record.derived.flop / record.derived.bytes; }

bool has_intensity(const CaseRecord& record) {
  return ranked(record) && record.c.ranks == 1 && record.derived.flop > 0.0 && record.derived.bytes > 0.0;
}

// The roof over the points, from the memory's slope over the ridge to the flat.
chart::Guide roof(const std::string& label, double memory, double arithmetic, const std::vector<Entry>& entries) {
  double least = intensity_of(*entries.front().record);
  double most = least;
  for (const Entry& e : entries) {
    least = std::min(least, intensity_of(*e.record));
    most = std::max(most, intensity_of(*e.record));
  }
  const double ridge = arithmetic / memory;
  least = std::min(least, ridge);
  most = std::max(most, ridge);
  // Somewhat beyond the data, so that both parts are seen.
  least /= 2.0;
  most *= 2.0;
  return {label, {bare_point(least, least * memory), bare_point(ridge, arithmetic), bare_point(most, arithmetic)}};
}

std::string roof_label(std::string_view kind, double memory, double arithmetic) {
  return fmt::format("{}: {}, {}", kind, format_quantity(arithmetic, "FLOP/s"), format_quantity(memory, "B/s"));
}

std::vector<chart::Guide> roofs(const KnownCeilings& known, const std::string& recipe,
                                const std::vector<Entry>& entries) {
  std::vector<chart::Guide> guides;
  const auto published = known.published.find(recipe);
  if (published != known.published.end() && known.published_memory) {
    const double memory = known.published_memory->value;
    const double arithmetic = published->second.value;
    guides.push_back(roof(roof_label("published", memory, arithmetic), memory, arithmetic, entries));
  }
  const auto measured = known.measured.find(recipe);
  if (measured != known.measured.end() && known.measured_memory) {
    const double memory = known.measured_memory->value;
    const double arithmetic = measured->second.value;
    guides.push_back(roof(roof_label("measured", memory, arithmetic), memory, arithmetic, entries));
  }
  return guides;
}

DataTable table_of(const std::vector<Entry>& entries) {
  DataTable table;
  table.title = counted(entries.size(), "case");
  table.columns = {
      {"FLOP per byte", true}, {"rate", true, "FLOP/s"}, {"bandwidth", true, "B/s"}, {"bound by"}, {"case"}};
  for (const Entry& e : entries) {
    const Derived& d = e.record->derived;
    table.rows.push_back({fmt::format("{:.3g}", intensity_of(*e.record)), format_quantity(d.flop_per_s, "FLOP/s"),
                          format_quantity(d.bytes_per_s, "B/s"),
                          d.peak ? (d.peak->limit == "memory" ? "memory" : "arithmetic") : "-", e.record->id});
  }
  return table;
}

Figure chart_of(const Side& side, const std::string& recipe, const std::vector<Entry>& entries,
                std::vector<chart::Guide> guides) {
  chart::PlotChart plot;
  plot.title = side.letter.empty() ? recipe : side.letter + ": " + recipe;
  plot.x = {"arithmetic intensity, FLOP per byte", chart::Scale::log10, chart::TickLabels::plain, ""};
  plot.y = rate_axis("FLOP/s", chart::Scale::log10);
  for (const Entry& e : entries) {
    const Derived& d = e.record->derived;
    const std::string note = fmt::format("{}/{} {}: {}", e.record->c.suite, e.record->c.workload,
                                         e.record->c.label.empty() ? to_string(e.record->c.dims) : e.record->c.label,
                                         format_quantity(d.flop_per_s, "FLOP/s"));
    add_point(plot.series, e.record->c.suite, chart::Mark::scatter,
              {intensity_of(*e.record), d.flop_per_s, {}, {}, note});
  }
  for (chart::Series& series : plot.series) sort_by_x(series.points);
  plot.guides = std::move(guides);
  plot.description = fmt::format("FLOP/s of {} in {} against FLOP per byte, both axes logarithmic, under {}.",
                                 counted(entries.size(), "case"), recipe, counted(plot.guides.size(), "roof"));
  return {slug(recipe + " " + side.letter), std::move(plot), table_of(entries)};
}

}  // namespace

Section roofline(std::span<const Side> sides) {
  Section section{"roofline",
                  "Roofline",
                  "The slope is what memory allows, the flat what arithmetic allows; a case just under the roof has "
                  "little left to gain. Data that stay in a cache can lift a small case above the slope.",
                  {{}}};
  for (const Side& side : sides) {
    std::vector<std::pair<std::string, std::vector<Entry>>> by_recipe;
    for (const CaseRecord& record : side.report->cases) {
      if (!has_intensity(record)) continue;
      auto same = std::find_if(by_recipe.begin(), by_recipe.end(),
                               [&](const auto& one) { return one.first == record.c.recipe; });
      if (same == by_recipe.end()) same = by_recipe.insert(by_recipe.end(), {record.c.recipe, {}});
      same->second.push_back({&side, &record});
    }
    for (const auto& [recipe, entries] : by_recipe) {
      std::vector<chart::Guide> guides = roofs(side.ceilings, recipe, entries);
      if (!guides.empty() && entries.size() > 1)
        section.groups[0].figures.push_back(chart_of(side, recipe, entries, std::move(guides)));
    }
  }
  return section;
}

}  // namespace gpubench::page
