#include "harness/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/core/record.h"
#include "harness/core/text/quantity.h"
#include "harness/page/html.h"
#include "harness/report/console.h"

namespace gpubench::page {
namespace {

struct Group {
  const Side* side = nullptr;
  std::string name;
  std::string precision;  // "bf16", "A bf16", "f32 x2"
  std::string unit;
  int place = 0;  // order: whole steps, other programs, single ops, launch-bound cases
  std::vector<const CaseRecord*> counted;
  std::map<std::string, int> left_out;
};

bool is_rate_of_items(const std::string& unit) { return unit != "FLOP/s" && unit != "B/s"; }

// The unit of a case without a timing: that of its workload, else of its suite.
class Units {
 public:
  explicit Units(const Report& report) {
    for (const CaseRecord& record : report.cases) {
      if (record.derived.headline_unit.empty()) continue;
      units_.try_emplace({record.c.suite, record.c.workload}, record.derived.headline_unit);
      units_.try_emplace({record.c.suite, ""}, record.derived.headline_unit);
    }
  }
  [[nodiscard]] std::string of(const CaseRecord& record) const {
    if (!record.derived.headline_unit.empty()) return record.derived.headline_unit;
    for (const std::string& workload : {record.c.workload, std::string()}) {
      if (const auto found = units_.find({record.c.suite, workload}); found != units_.end()) return found->second;
    }
    return "";
  }

 private:
  std::map<std::pair<std::string, std::string>, std::string> units_;
};

// Empty: counted.
std::string exclusion_reason(const CaseRecord& record) {
  if (record.verdict != Verdict::pass) return spaced(name(record.verdict));
  if (record.c.has_mode("virtual")) return "of virtual ranks";
  if (!ranked(record)) return "without a rate";
  if (!reliable(record)) return "unreliable";
  return record.c.cache == CacheMode::warm ? "with a warm cache" : "";
}

// "bf16", on several ranks "bf16 x2".
std::string precision_of(const CaseRecord& record) {
  return record.c.recipe + (record.c.ranks > 1 ? fmt::format(" x{}", record.c.ranks) : "");
}

int place_of(const CaseRecord& record, const std::string& unit) {
  if (is_whole_step(record)) return 0;
  if (!is_rate_of_items(unit)) return 2;
  return is_arithmetic(record) || record.derived.headline_unit.empty() ? 1 : 3;
}

void add_groups(std::vector<Group>& groups, const Side& side) {
  const Units units(*side.report);
  for (const CaseRecord& record : side.report->cases) {
    const std::string unit = units.of(record);
    if (unit.empty()) continue;
    const std::string what = is_rate_of_items(unit) ? record.c.suite + "/" + record.c.workload : record.c.suite;
    const std::string precision = (side.letter.empty() ? "" : side.letter + " ") + precision_of(record);
    auto same = std::find_if(groups.begin(), groups.end(), [&](const Group& g) {
      return g.name == what && g.precision == precision && g.unit == unit;
    });
    if (same == groups.end())
      same = groups.insert(groups.end(), {&side, what, precision, unit, place_of(record, unit), {}, {}});
    const std::string why = exclusion_reason(record);
    if (why.empty()) {
      same->counted.push_back(&record);
    } else {
      ++same->left_out[why];
    }
  }
}

// The table of all cases gives the reason.
bool nothing_ran(const Group& group) {
  return group.counted.empty() && std::all_of(group.left_out.begin(), group.left_out.end(), [](const auto& one) {
           return one.first == name(Verdict::unsupported) || one.first == name(Verdict::skipped);
         });
}

std::string geometric_mean(const Group& group) {
  double logs = 0.0;
  for (const CaseRecord* record : group.counted) logs += std::log(record->derived.headline);
  return format_quantity(std::exp(logs / static_cast<double>(group.counted.size())), group.unit);
}

std::string mean_interval(const Group& group) {
  double widths = 0.0;
  for (const CaseRecord* record : group.counted)
    widths += 0.5 * std::log(record->summary.ci95_high_ns / record->summary.ci95_low_ns);
  const double width = widths / static_cast<double>(group.counted.size());
  return format_interval(1.0, std::exp(-width), std::exp(width));
}

std::string share_text(const Group& group, const CaseRecord& best) {
  const std::optional<CeilingShare> share = share_of_ceiling(best, group.side->ceilings);
  if (!share) return "-";
  // Ceilings measured by the run: the best case may be that ceiling, or exceed it from a cache.
  if (share->of != "peak" && share->of != "link") {
    if (share->fraction == 1.0) return "the ceiling itself";
    if (share->fraction > 1.0) return "above the " + std::string(share->of);
  }
  return fmt::format("{} of {}", percent_text(share->fraction), share->of);
}

std::vector<std::string> row_of(const Group& group) {
  std::size_t all = group.counted.size();
  for (const auto& [why, count] : group.left_out) all += static_cast<std::size_t>(count);
  std::string of = fmt::format("{} of {}", group.counted.size(), all);
  if (!group.left_out.empty()) of += "; " + reasons_text(group.left_out);
  if (group.counted.empty()) return {group.name, group.precision, "-", "-", of, "-", "-", "-", "-"};
  const CaseRecord& best = *best_of(group.counted);
  const Summary& s = best.summary;
  return {group.name,
          group.precision,
          geometric_mean(group),
          mean_interval(group),
          of,
          format_quantity(best.derived.headline, group.unit),
          format_interval(s.median_ns, s.ci95_low_ns, s.ci95_high_ns),
          share_text(group, best),
          (is_rate_of_items(group.unit) ? "" : best.c.workload + " ") + short_name(best)};
}

}  // namespace

DataTable speed_table(std::span<const Side> sides) {
  std::vector<Group> groups;
  for (const Side& side : sides) add_groups(groups, side);
  std::erase_if(groups, nothing_ran);
  // Within a suite, precisions are together in plan order, and so are the reports of one precision.
  std::vector<std::string> names;
  for (const Group& group : groups) {
    if (std::find(names.begin(), names.end(), group.name) == names.end()) names.push_back(group.name);
  }
  const auto name_place = [&](const Group& g) { return std::find(names.begin(), names.end(), g.name) - names.begin(); };
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return std::pair(a.place, name_place(a)) < std::pair(b.place, name_place(b));
  });
  DataTable table;
  table.title = "How fast";
  table.columns = {{"suite"},      {"precision"},  {"geometric mean", true}, {"±95%", true}, {"of cases"},
                   {"best", true}, {"±95%", true}, {"of the ceiling", true}, {"best case"}};
  for (const Group& group : groups) table.rows.push_back(row_of(group));
  return table;
}

void add_speed(Html& html, const Material& material) {
  const DataTable table = speed_table(material.sides);
  if (table.rows.empty()) return;
  html.element("p",
               fmt::format("Geometric means and bests of each suite and precision. They leave out cases that did not "
                           "pass, unreliable timings (95% interval wider than ±{:.0f}%) and warm caches.",
                           100.0 * max_half_width),
               "class=\"lead\"");
  html.raw("\n<div class=\"told\">\n");
  add_table(html, table, "How fast each suite is in each precision");
  html.raw("</div>\n");
}

DataTable bests_table(std::span<const Side> sides) {
  DataTable table;
  table.title = "Best rates";
  table.columns = {{"suite"}};
  for (const Side& side : sides) table.columns.push_back({side.letter.empty() ? "best rate" : side.letter, true});
  if (sides.size() == 1) table.columns.push_back({"case"});
  for (std::size_t i = 0; i < sides.size(); ++i) {
    for (const auto& suite : grouped(sides[i].report->cases, [](const CaseRecord& r) { return r.c.suite; })) {
      auto row = std::find_if(table.rows.begin(), table.rows.end(), [&](const auto& r) { return r[0] == suite.key; });
      if (row == table.rows.end()) {
        row = table.rows.insert(row, std::vector<std::string>(table.columns.size(), "-"));
        row->front() = suite.key;
      }
      std::vector<const CaseRecord*> counted;
      std::copy_if(suite.items.begin(), suite.items.end(), std::back_inserter(counted),
                   [](const CaseRecord* r) { return exclusion_reason(*r).empty(); });
      const CaseRecord* best = best_of(counted);
      if (best == nullptr) continue;
      const Derived& d = best->derived;
      row->at(i + 1) = format_quantity(d.headline, d.headline_unit) + " " + precision_of(*best);
      if (sides.size() == 1) row->back() = best->c.workload + " " + short_name(*best);
    }
  }
  return table;
}

void add_bests(Html& html, std::span<const Side> sides) {
  const DataTable table = bests_table(sides);
  html.element("h2", table.title).raw("\n");
  const bool none = std::all_of(table.rows.begin(), table.rows.end(), [](const std::vector<std::string>& row) {
    return std::all_of(row.begin() + 1, row.end(), [](const std::string& cell) { return cell == "-"; });
  });
  if (none) {
    html.raw("<p>No case passed with a reliable timing and a cold cache.</p>\n");
  } else {
    add_table(html, table, "Best rate of each suite");
  }
}

}  // namespace gpubench::page
