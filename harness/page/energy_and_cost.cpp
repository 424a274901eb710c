#include "harness/page/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/page/rates.h"
#include "harness/report/quantity.h"

namespace gpubench::page {
namespace {

constexpr double seconds_per_hour = 3600.0;
constexpr double million = 1e6;
constexpr double exa = 1e18;
constexpr std::size_t most_bars = 40;  // of a chart; the table has them all

std::string work_unit(const CaseRecord& record) {
  return record.derived.headline_unit.substr(0, record.derived.headline_unit.find('/'));
}

std::string case_name(const Entry& e) {
  const Case& c = e.record->c;
  const std::string shape = c.label.empty() ? to_string(c.dims) : c.label;
  return fmt::format("{} {} {}", c.workload, shape, series_name(e, c.ranks > 1));
}

bool has_energy(const CaseRecord& record) {
  return ranked(record) && record.derived.energy_j && record.derived.energy_per_work_j &&
         *record.derived.energy_per_work_j > 0.0;
}

Figure energy_figure(const std::string& unit, std::vector<Entry> entries) {
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return *a.record->derived.energy_per_work_j < *b.record->derived.energy_per_work_j;
  });
  chart::BarChart chart;
  chart.title = entries.size() > most_bars
                    ? fmt::format("Work per joule, {}: the {} best of {}", unit, most_bars, entries.size())
                    : "Work per joule, " + unit;
  chart.value = rate_axis(unit + "/J", chart::Scale::linear);
  chart.value.title = "work per joule";
  chart.groups.emplace_back();
  DataTable table;
  table.columns = {
      {"case"}, {"energy of a run", true, "J"}, {"work per joule", true, unit + "/J"}, {"rate", true, unit + "/s"}};
  for (const Entry& e : entries) {
    const Derived& d = e.record->derived;
    const double per_joule = 1.0 / *d.energy_per_work_j;
    const std::string text = format_quantity(per_joule, unit + "/J");
    if (chart.groups[0].bars.size() < most_bars) {
      chart::Bar bar;
      bar.label = case_name(e);
      bar.value = per_joule;
      bar.text = text;
      bar.note = e.record->id;
      bar.doubtful = !reliable(*e.record);
      chart.groups[0].bars.push_back(std::move(bar));
    }
    table.rows.push_back({e.record->id, format_quantity(*d.energy_j, "J"), text, marked_rate(*e.record)});
  }
  table.title = counted(entries.size(), "case");
  chart.description = fmt::format("{} per joule, {}, best first.", unit, counted(entries.size(), "case"));
  return {slug("energy " + unit), std::move(chart), std::move(table)};
}

/// What is priced: a million of an item, or an exaFLOP.
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

Figure cost_figure(const Good& good, std::vector<Entry> entries, double price_per_hour) {
  const auto price = [&](const Entry& e) { return price_of(good, e, price_per_hour); };
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) { return price(a) < price(b); });
  chart::BarChart chart;
  chart.title = entries.size() > most_bars
                    ? fmt::format("{}: the {} cheapest of {}", good.title, most_bars, entries.size())
                    : good.title;
  chart.value = {good.title, chart::Scale::linear, chart::TickLabels::plain, ""};
  chart.groups.emplace_back();
  DataTable table;
  table.columns = {{"case"}, {good.title, true}, {"rate", true, good.item.empty() ? "FLOP/s" : good.item + "/s"}};
  for (const Entry& e : entries) {
    if (chart.groups[0].bars.size() < most_bars) {
      chart::Bar bar;
      bar.label = case_name(e);
      bar.value = price(e);
      bar.text = money(price(e));
      bar.note = e.record->id;
      chart.groups[0].bars.push_back(std::move(bar));
    }
    table.rows.push_back({e.record->id, money(price(e)),
                          format_quantity(rate_of(good, *e.record), good.item.empty() ? "FLOP/s" : good.item + "/s")});
  }
  table.title = counted(entries.size(), "case");
  chart.description = fmt::format("{}, {}, cheapest first.", good.title, counted(entries.size(), "case"));
  return {good.key, std::move(chart), std::move(table)};
}

}  // namespace

Section energy(std::span<const Side> sides) {
  Section section{"energy",
                  "Energy",
                  "Work for each joule that the device's own counter told, over 2 s or more of each case. Longer is "
                  "better.",
                  {{}}};
  std::vector<std::pair<std::string, std::vector<Entry>>> units;
  for (const Side& side : sides) {
    for (const CaseRecord& record : side.report->cases) {
      if (!has_energy(record)) continue;
      const std::string unit = work_unit(record);
      auto same = std::find_if(units.begin(), units.end(), [&](const auto& one) { return one.first == unit; });
      if (same == units.end()) same = units.insert(units.end(), {unit, {}});
      same->second.push_back({&side, &record});
    }
  }
  for (auto& [unit, entries] : units) section.groups[0].figures.push_back(energy_figure(unit, std::move(entries)));
  return section;
}

Section cost(std::span<const Side> sides, const PageOptions& options) {
  Section section{"cost", "Cost", "", {{}}};
  if (!options.price_per_hour) return section;
  section.lead = fmt::format(
      "Whole training steps at {} for a device and hour, at the measured rate and nothing else: no idle time, no "
      "input, no checkpoints. "
      "Shorter is cheaper.",
      money(*options.price_per_hour));
  std::size_t unsure = 0;
  const Good goods[] = {{"tokens", "Cost of a million tokens", "tokens", million},
                        {"images", "Cost of a million images", "images", million},
                        {"flop", "Cost of an exaFLOP (10^18)", "", exa}};
  for (const Good& good : goods) {
    std::vector<Entry> entries;
    for (const Side& side : sides) {
      for (const CaseRecord& record : side.report->cases) {
        // An op, or a block, is a part of what anybody pays for; a price of an unreliable rate is none.
        if (!ranked(record) || !is_whole_step(record) || !(rate_of(good, record) > 0.0)) continue;
        if (reliable(record)) {
          entries.push_back({&side, &record});
        } else if (good.item.empty()) {
          ++unsure;
        }
      }
    }
    if (!entries.empty())
      section.groups[0].figures.push_back(cost_figure(good, std::move(entries), *options.price_per_hour));
  }
  const std::string left_out =
      unsure == 0 ? "" : fmt::format("{} left out: the timing is unreliable.", counted(unsure, "step is", "steps are"));
  if (!section.empty()) {
    section.lead += (left_out.empty() ? "" : " ") + left_out;
  } else {
    section.notice = left_out.empty() ? "No whole training step passed: the price of a part says nothing." : left_out;
  }
  return section;
}

}  // namespace gpubench::page
