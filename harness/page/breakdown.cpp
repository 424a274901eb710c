#include <fmt/format.h>

#include <algorithm>

#include "harness/core/record.h"
#include "harness/core/step_parts.h"
#include "harness/core/text/quantity.h"
#include "harness/page/sections.h"

namespace gpubench::page {
namespace {

constexpr std::size_t max_programs = 16;

std::string step_name(const Entry& e) {
  return fmt::format("{} {}, {}", e.record->c.workload, short_name(*e.record), series_name(e));
}

/// The programs of a suite. Draws the one with the most work per workload and series.
struct Programs {
  explicit Programs(std::span<const Entry> suite) {
    for (const Entries& series : split(suite, [](const Entry& e) { return workload_name(e) + " " + series_name(e); })) {
      const auto work = [](const Entry& e) { return e.record->derived.flop; };
      if (drawn.size() < max_programs) drawn.push_back(*std::ranges::max_element(series, {}, work));
      ++all;
    }
  }
  [[nodiscard]] bool draws(const Entry& e) const {
    return std::ranges::any_of(drawn, [&](const Entry& one) { return one.record == e.record; });
  }
  /// "transformer", "transformer: 16 of 20".
  [[nodiscard]] std::string title() const {
    const std::string& suite = drawn.front().record->c.suite;
    return drawn.size() < all ? fmt::format("{}: {} of {}", suite, drawn.size(), all) : suite;
  }

  Entries drawn;
  std::size_t all = 0;
};

// "12.0%"; "unknown" if the step's time is too uncertain.
std::string share_of_step(const StepPart& part, const CaseRecord& record) {
  return share_is_reliable(part.share, record.summary) ? percent_text(part.share) : "unknown";
}

chart::StackedBar bar_of_step(const Entry& e) {
  const CaseRecord& record = *e.record;
  const Derived& d = record.derived;
  const bool sure = reliable(record);
  chart::StackedBar bar{
      fmt::format("{}: {}{}", step_name(e), sure ? "" : "~", format_time_ns(record.summary.median_ns)), {}};
  if (!sure) bar.label += ", unreliable";
  const std::optional<double> left = reliable_remainder(record);
  const double all = left ? 1.0 : 1.0 - d.remainder;  // the step; if the ops' sum differs too much from it, that sum
  if (!left) bar.label += ", shares of the ops' sum";
  for (const StepPart& kind : parts_by_kind(d.breakdown))
    bar.parts.push_back({kind.name, kind.share / all,
                         fmt::format("{}: {} of the step, {} in {}", kind.name, share_of_step(kind, record),
                                     format_time_ns(kind.median_ns), counted(kind.ops, "op"))});
  const std::string text = left ? fmt::format("{:+.1f}%", 100.0 * *left) : "unknown";
  if (left && *left > 0.0) bar.parts.push_back({"left over", *left, "left over: " + text});
  if (sure && !(left && *left >= 0.0)) bar.label += ", left over " + text;
  if (const std::optional<double> mfu = utilization(d, d.flop_per_s))
    bar.label += fmt::format(", {} {}", utilization_name(record.c), percent_text(*mfu));
  return bar;
}

void add_rows(DataTable& table, const Entry& e, const char* what, const std::vector<StepPart>& parts) {
  for (const StepPart& part : parts)
    table.rows.push_back({step_name(e), what, part.name, fmt::format("{}", part.ops), format_time_ns(part.median_ns),
                          share_of_step(part, *e.record), format_quantity(part.flop, "FLOP"),
                          format_quantity(part.bytes, "B"), format_quantity(part.flop_per_s(), "FLOP/s"),
                          part.largest});
}

void add_step(DataTable& table, const Entry& e, bool by_layer) {
  const CaseRecord& record = *e.record;
  const Derived& d = record.derived;
  add_rows(table, e, "op", parts_by_kind(d.breakdown));
  const std::optional<double> left = reliable_remainder(record);
  const char* why = !left ? "" : *left > 0.0 ? "gaps between launches" : "overlap, warm caches";
  table.rows.push_back({step_name(e), "left over", why, "",
                        left ? format_time_ns(*left * record.summary.median_ns) : "unknown",
                        left ? fmt::format("{:+.1f}%", 100.0 * *left) : "unknown", "", "", "", ""});
  if (const std::optional<double> mfu = utilization(d, d.flop_per_s))
    table.rows.push_back({step_name(e), std::string(utilization_name(record.c)), "", "", "", percent_text(*mfu),
                          format_quantity(d.flop, "FLOP"), "", "",
                          fmt::format("{}'s peak: {}", d.peak->limit, d.peak->peak_source)});
  const std::vector<StepPart> layers = parts_by_layer(d.breakdown);
  if (by_layer && layers.size() < d.breakdown.size()) add_rows(table, e, "layer", layers);
}

}  // namespace

std::vector<Entries> programs_by_suite(std::span<const Side> sides) {
  const Entries programs = entries_of(
      sides, [](const CaseRecord& r) { return r.c.ranks == 1 && parts_by_kind(r.derived.breakdown).size() > 1; });
  return split(programs, [](const Entry& e) { return e.record->c.suite; });
}

// One chart per suite, so that an op has one colour in all of its programs.
void draw_breakdown(std::span<const Entry> suite, std::vector<Figure>& figures) {
  const Programs programs(suite);
  chart::StackChart chart{
      programs.title(), fmt::format("The time of {} by kind of op.", counted(programs.drawn.size(), "program")), {}};
  for (const Entry& e : programs.drawn) chart.bars.push_back(bar_of_step(e));
  DataTable table{counted(suite.size(), "program"),
                  {{"step"},
                   {"by"},
                   {"part"},
                   {"ops", true},
                   {"alone", true, "s"},
                   {"of the step", true},
                   {"work", true},
                   {"bytes", true},
                   {"rate", true, "FLOP/s"},
                   {"largest"}},
                  {}};
  for (const Entry& e : suite) add_step(table, e, programs.draws(e));
  figures.push_back({slug(suite.front().record->c.suite), std::move(chart), std::move(table)});
}

void draw_memory(std::span<const Entry> suite, std::vector<Figure>& figures) {
  const Programs programs(suite);
  chart::StackChart chart{programs.title(), "The memory of a program's tensors by kind, with every value kept.", {}};
  DataTable table{"", {{"step"}, {"kind"}, {"bytes", true}, {"of all", true}}, {}};
  for (const Entry& e : programs.drawn) {
    if (!e.record->memory) continue;
    double all = 0.0;
    for (const MemoryPart& part : *e.record->memory) all += static_cast<double>(part.bytes);
    chart::StackedBar bar{fmt::format("{}: {}", step_name(e), format_quantity(all, "B")), {}};
    for (const MemoryPart& part : *e.record->memory) {
      const auto bytes = static_cast<double>(part.bytes);
      const std::string share = percent_text(bytes / all);
      const std::string text = format_quantity(bytes, "B");
      bar.parts.push_back({part.kind, bytes / all, fmt::format("{}: {}, {} of all", part.kind, text, share)});
      table.rows.push_back({step_name(e), part.kind, text, share});
    }
    chart.bars.push_back(std::move(bar));
  }
  table.title = counted(table.rows.size(), "kind");
  if (!chart.bars.empty())
    figures.push_back({slug("memory " + suite.front().record->c.suite), std::move(chart), std::move(table)});
}

}  // namespace gpubench::page
