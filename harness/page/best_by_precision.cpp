// best_by_precision(): see throughput.h.
#include <fmt/format.h>

#include <algorithm>

#include "harness/page/known_ceilings.h"
#include "harness/page/rates.h"
#include "harness/page/sections.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

/// The fastest case of a suite in one precision.
struct Best {
  std::string suite;
  std::string series;
  Entry entry;
};

std::vector<Best> bests_in(std::span<const Side> sides, const std::string& unit) {
  std::vector<Best> bests;
  for (const Side& side : sides) {
    for (const CaseRecord& record : side.report->cases) {
      const bool counts = reliable(record) && record.c.ranks == 1 && record.derived.headline_unit == unit;
      if (!counts || record.c.cache == CacheMode::warm) continue;
      const Entry entry{&side, &record};
      const std::string series = side.letter.empty() ? record.c.recipe : side.letter + " " + record.c.recipe;
      auto same = std::find_if(bests.begin(), bests.end(),
                               [&](const Best& b) { return b.suite == record.c.suite && b.series == series; });
      if (same == bests.end()) {
        bests.push_back({record.c.suite, series, entry});
      } else if (record.derived.headline > same->entry.record->derived.headline) {
        same->entry = entry;
      }
    }
  }
  return bests;
}

// The published peak of what the case's headline counts, even where another limit binds the case.
std::optional<double> peak_of(const Best& best, const std::string& unit) {
  const KnownCeilings& ceilings = best.entry.side->ceilings;
  if (unit == "B/s") return ceilings.published_memory ? std::optional(ceilings.published_memory->value) : std::nullopt;
  const auto found = ceilings.published.find(best.entry.record->c.recipe);
  return found == ceilings.published.end() ? std::nullopt : std::optional(found->second.value);
}

std::vector<std::string> suites_of(const std::vector<Best>& bests) {
  std::vector<std::string> suites;
  for (const Best& best : bests) {
    if (std::find(suites.begin(), suites.end(), best.suite) == suites.end()) suites.push_back(best.suite);
  }
  return suites;
}

Figure bars(const std::vector<Best>& bests, const std::string& unit) {
  chart::BarChart chart;
  chart.title = unit == "B/s" ? "Best bandwidth by precision" : "Best arithmetic rate by precision";
  chart.value = rate_axis(unit, chart::Scale::linear);
  DataTable table;
  table.columns = {{"suite"},         {"precision"}, {"best rate", true, unit}, {"peak", true, unit},
                   {"of peak", true}, {"case"}};
  for (const std::string& suite : suites_of(bests)) {
    chart::BarGroup group{suite, {}};
    for (const Best& best : bests) {
      if (best.suite != suite) continue;
      const CaseRecord& record = *best.entry.record;
      const std::optional<double> peak = peak_of(best, unit);
      const std::string rate = format_quantity(record.derived.headline, unit);
      const std::string share = percent_text(peak ? std::optional(record.derived.headline / *peak) : std::nullopt);
      chart::Bar bar;
      bar.label = best.series;
      bar.value = record.derived.headline;
      bar.limit = peak;
      bar.text = peak ? fmt::format("{}, {} of peak", rate, share) : rate;
      bar.note = record.id;
      group.bars.push_back(std::move(bar));
      table.rows.push_back({suite, best.series, rate, peak ? format_quantity(*peak, unit) : "-", share, record.id});
    }
    chart.groups.push_back(std::move(group));
  }
  table.title = counted(table.rows.size(), "bar");
  chart.description = fmt::format("The fastest case of each suite in each precision, {}.", unit);
  return {slug("best " + unit), std::move(chart), std::move(table)};
}

// Suites in which a bar can be held against another one, or against a peak.
void keep_comparable(std::vector<Best>& bests, const std::string& unit) {
  const std::vector<Best> all = bests;
  std::erase_if(bests, [&](const Best& best) {
    const auto of_suite = std::count_if(all.begin(), all.end(), [&](const Best& b) { return b.suite == best.suite; });
    return of_suite < 2 && !peak_of(best, unit);
  });
}

}  // namespace

Section best_by_precision(std::span<const Side> sides) {
  Section section{"precision",
                  "Precisions against peak",
                  "The fastest case of each suite in each precision. The outline behind a bar is the device's "
                  "published peak, where one is known.",
                  {{}}};
  for (const char* unit : {"FLOP/s", "B/s"}) {
    std::vector<Best> bests = bests_in(sides, unit);
    keep_comparable(bests, unit);
    if (!bests.empty()) section.groups[0].figures.push_back(bars(bests, unit));
  }
  return section;
}

}  // namespace gpubench::page
