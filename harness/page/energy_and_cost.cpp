#include <fmt/format.h>

#include <algorithm>

#include "harness/core/text/quantity.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

constexpr double seconds_per_hour = 3600.0;
constexpr double million = 1e6;
constexpr double exa = 1e18;
constexpr std::size_t max_bars = 40;

std::string work_unit(const Entry& e) {
  const std::string& unit = e.record->derived.headline_unit;
  return unit.substr(0, unit.find('/'));
}

std::string case_name(const Entry& e) {
  const Case& c = e.record->c;
  return fmt::format("{} {} {}{}", c.workload, short_name(*e.record), series_name(e),
                     c.ranks > 1 ? fmt::format(" x{}", c.ranks) : "");
}

// `most`: added to the title if not all bars are drawn; says which are.
chart::BarChart bars_of(const std::string& title, const std::string& most, std::span<const Entry> entries,
                        const std::function<chart::Bar(const Entry&)>& bar) {
  chart::BarChart chart;
  chart.title =
      entries.size() > max_bars ? fmt::format("{}: the {} {} of {}", title, max_bars, most, entries.size()) : title;
  chart.groups.push_back(bar_group("", entries.first(std::min(max_bars, entries.size())), bar));
  return chart;
}

struct Good {
  std::string key;
  std::string title;
  std::string item;  // of the record; empty: FLOP
  double amount = 1.0;
};

double rate_of(const Good& good, const CaseRecord& record) {
  if (good.item.empty()) return record.derived.flop_per_s;
  return record.derived.item == good.item ? record.derived.items_per_s : 0.0;
}

double price_of(const Good& good, const Entry& e, double price_per_hour) {
  const bool own_devices = !e.side->report->run.devices.empty() && e.side->report->run.devices.front().kind != "cpu";
  const double devices = own_devices ? e.record->c.ranks : 1;
  return devices * price_per_hour / seconds_per_hour * (good.amount / rate_of(good, *e.record));
}

std::string money(double amount) {
  return amount < 0.01 ? fmt::format("{:.3g}", amount) : fmt::format("{:.4g}", amount);
}

Figure cost_figure(const Good& good, Entries entries, double price_per_hour) {
  const std::string unit = good.item.empty() ? "FLOP/s" : good.item + "/s";
  const auto price = [&](const Entry& e) { return price_of(good, e, price_per_hour); };
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) { return price(a) < price(b); });
  chart::BarChart chart = bars_of(good.title, "cheapest", entries, [&](const Entry& e) {
    return bar_of(bare_point(0.0, price(e)), case_name(e), money(price(e)), e.record->key());
  });
  chart.value = {good.title};
  chart.description = fmt::format("{}, {}, cheapest first.", good.title, counted(entries.size(), "case"));
  DataTable table = table_of(
      entries, std::vector<Column>{case_column(),
                                   {{good.title, true}, [&](const Entry& e) { return money(price(e)); }},
                                   {{"rate", true, unit},
                                    [&](const Entry& e) { return format_quantity(rate_of(good, *e.record), unit); }}});
  return {good.key, std::move(chart), std::move(table)};
}

}  // namespace

std::vector<Entries> cases_with_energy(std::span<const Side> sides) {
  const Entries entries = entries_of(sides, [](const CaseRecord& r) {
    return r.derived.energy_j && r.derived.energy_per_work_j && *r.derived.energy_per_work_j > 0.0;
  });
  return split(entries, work_unit);
}

void draw_energy(std::span<const Entry> cases, std::vector<Figure>& figures) {
  const std::string unit = work_unit(cases.front());
  const auto per_joule = [](const Entry& e) { return 1.0 / *e.record->derived.energy_per_work_j; };
  const auto text = [&](const Entry& e) { return format_quantity(per_joule(e), unit + "/J"); };
  Entries entries(cases.begin(), cases.end());
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return *a.record->derived.energy_per_work_j < *b.record->derived.energy_per_work_j;
  });
  chart::BarChart chart = bars_of("Work per joule, " + unit, "best", entries, [&](const Entry& e) {
    chart::Point point = bare_point(0.0, per_joule(e));
    point.doubtful = !reliable(*e.record);
    return bar_of(point, case_name(e), text(e), e.record->key());
  });
  chart.value = rate_axis(unit + "/J", chart::Scale::linear, "work per joule");
  chart.description = fmt::format("{} per joule, {}, best first.", unit, counted(entries.size(), "case"));
  DataTable table = table_of(
      entries,
      std::vector<Column>{case_column(),
                          {{"energy of a run", true, "J"},
                           [](const Entry& e) { return format_quantity(*e.record->derived.energy_j, "J"); }},
                          {{"work per joule", true, unit + "/J"}, text},
                          {{"rate", true, unit + "/s"}, [](const Entry& e) { return marked_rate(*e.record); }}});
  figures.push_back({slug("energy " + unit), std::move(chart), std::move(table)});
}

void add_cost(std::vector<SectionPart>& parts, const Material& material) {
  if (!material.options.price_per_hour) return;
  const double price = *material.options.price_per_hour;
  SectionPart& part = parts.emplace_back(SectionPart{.title = "Cost"});
  part.lead = fmt::format(
      "Whole training steps at {} per device and hour, at the measured rate, without idle time, input and checkpoints. "
      "Shorter is cheaper.",
      money(price));
  const Good goods[] = {{"tokens", "Cost of a million tokens", "tokens", million},
                        {"images", "Cost of a million images", "images", million},
                        {"flop", "Cost of an exaFLOP (10^18)", "", exa}};
  std::size_t unsure = 0;
  for (const Good& good : goods) {
    // Only whole steps with reliable rates: nobody pays for an op or a block alone.
    Entries entries =
        entries_of(material.sides, [&](const CaseRecord& r) { return is_whole_step(r) && rate_of(good, r) > 0.0; });
    const std::size_t removed = std::erase_if(entries, [](const Entry& e) { return !reliable(*e.record); });
    if (good.item.empty()) unsure = removed;
    if (!entries.empty()) part.figures.push_back(cost_figure(good, std::move(entries), price));
  }
  const std::string left_out =
      unsure == 0 ? "" : fmt::format("{} left out: the timing is unreliable.", counted(unsure, "step is", "steps are"));
  if (!part.empty()) {
    part.lead += (left_out.empty() ? "" : " ") + left_out;
  } else {
    part.notice = left_out.empty() ? "No whole training step passed; parts of one are not priced." : left_out;
  }
}

}  // namespace gpubench::page
