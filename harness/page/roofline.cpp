#include "harness/page/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/core/reliability.h"
#include "harness/page/rates.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

double intensity_of(const CaseRecord& record) { return record.derived.flop / record.derived.bytes; }

bool has_intensity(const CaseRecord& record) {
  return ranked(record) && record.c.ranks == 1 && record.derived.flop > 0.0 && record.derived.bytes > 0.0;
}

/// The limits of memory and of arithmetic together.
struct Roof {
  std::string kind;  // "published", "measured"
  double memory = 0.0;
  double arithmetic = 0.0;

  [[nodiscard]] double ridge() const { return arithmetic / memory; }
  [[nodiscard]] double at(double intensity) const { return std::min(intensity * memory, arithmetic); }
};

std::vector<Roof> roofs(const KnownCeilings& known, const std::string& recipe) {
  std::vector<Roof> roofs;
  const auto published = known.published.find(recipe);
  if (published != known.published.end() && known.published_memory)
    roofs.push_back({"published", known.published_memory->value, published->second.value});
  const auto measured = known.measured.find(recipe);
  if (measured != known.measured.end() && known.measured_memory)
    roofs.push_back({"measured", known.measured_memory->value, measured->second.value});
  return roofs;
}

// The roof over the points, from the memory's slope over the ridge to the flat.
chart::Guide guide_of(const Roof& roof, const std::vector<Entry>& entries) {
  double least = roof.ridge();
  double most = roof.ridge();
  for (const Entry& e : entries) {
    least = std::min(least, intensity_of(*e.record));
    most = std::max(most, intensity_of(*e.record));
  }
  // Somewhat beyond the data, so that both parts are seen.
  least /= 2.0;
  most *= 2.0;
  return {
      fmt::format("{}: {}, {}", roof.kind, format_quantity(roof.arithmetic, "FLOP/s"),
                  format_quantity(roof.memory, "B/s")),
      {bare_point(least, roof.at(least)), bare_point(roof.ridge(), roof.arithmetic), bare_point(most, roof.at(most))}};
}

// Why a case can be above the roof; empty where it is not, or where its interval reaches down to it.
std::string why_above(const CaseRecord& record, const Roof& roof) {
  const double low = 1.0 - half_width(record.summary).value_or(1.0);
  if (!(record.derived.flop_per_s * low > roof.at(intensity_of(record)))) return "";
  return intensity_of(record) < roof.ridge() ? "its data stay in a cache, or are updated in place"
                                             : "no matrix product of this run was as fast";
}

DataTable table_of(const std::vector<Entry>& entries, const Roof& roof) {
  DataTable table;
  table.title = counted(entries.size(), "case");
  table.columns = {{"FLOP per byte", true},
                   {"rate", true, "FLOP/s"},
                   {"bandwidth", true, "B/s"},
                   {"of the " + roof.kind + " roof", true},
                   {"bound by"},
                   {"case"},
                   {"why above"}};
  for (const Entry& e : entries) {
    const Derived& d = e.record->derived;
    const double intensity = intensity_of(*e.record);
    table.rows.push_back(
        {fmt::format("{:.3g}", intensity), marked_rate(*e.record, d.flop_per_s, "FLOP/s"),
         marked_rate(*e.record, d.bytes_per_s, "B/s"),
         percent_text(reliable(*e.record) ? std::optional(d.flop_per_s / roof.at(intensity)) : std::nullopt),
         intensity < roof.ridge() ? "memory" : "arithmetic", e.record->id, why_above(*e.record, roof)});
  }
  return table;
}

Figure chart_of(const Side& side, const std::string& recipe, const std::vector<Entry>& entries,
                const std::vector<Roof>& roofs) {
  chart::PlotChart plot;
  plot.title = side.letter.empty() ? recipe : side.letter + ": " + recipe;
  plot.x = {"arithmetic intensity, FLOP per byte", chart::Scale::log10, chart::TickLabels::plain, ""};
  plot.y = rate_axis("FLOP/s", chart::Scale::log10);
  for (const Entry& e : entries) {
    const Derived& d = e.record->derived;
    std::string note = fmt::format("{}/{} {}: {}", e.record->c.suite, e.record->c.workload,
                                   e.record->c.label.empty() ? to_string(e.record->c.dims) : e.record->c.label,
                                   marked_rate(*e.record, d.flop_per_s, "FLOP/s"));
    const std::string why = why_above(*e.record, roofs.front());
    if (!why.empty()) note += fmt::format(", above the {} roof: {}", roofs.front().kind, why);
    add_point(plot.series, e.record->c.suite, chart::Mark::scatter,
              {intensity_of(*e.record), d.flop_per_s, {}, {}, note, !reliable(*e.record)});
  }
  for (chart::Series& series : plot.series) sort_by_x(series.points);
  for (const Roof& roof : roofs) plot.guides.push_back(guide_of(roof, entries));
  plot.description = fmt::format("FLOP/s of {} in {} against FLOP per byte, both axes logarithmic, under {}.",
                                 counted(entries.size(), "case"), recipe, counted(plot.guides.size(), "roof"));
  return {slug(recipe + " " + side.letter), std::move(plot), table_of(entries, roofs.front())};
}

}  // namespace

Section roofline(std::span<const Side> sides) {
  Section section{"roofline",
                  "Roofline",
                  "The slope is what memory allows, the flat what arithmetic allows; a case just under the roof has "
                  "little left to gain. A measured roof is the best copy or triad and the best matrix product of this "
                  "run.",
                  {{}}};
  std::size_t above = 0;
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
      const std::vector<Roof> known = roofs(side.ceilings, recipe);
      if (known.empty() || entries.size() < 2) continue;
      section.groups[0].figures.push_back(chart_of(side, recipe, entries, known));
      above += static_cast<std::size_t>(std::count_if(entries.begin(), entries.end(), [&](const Entry& e) {
        return !why_above(*e.record, known.front()).empty();
      }));
    }
  }
  if (above > 0)
    section.lead += fmt::format(
        " {} above it, and the data below each chart say why: only compulsory bytes are counted, so that data which "
        "stay "
        "in a cache, or are updated where they lie, need not pass through memory at the rate of a copy.",
        above == 1 ? "1 case lies" : fmt::format("{} cases lie", above));
  return section;
}

}  // namespace gpubench::page
