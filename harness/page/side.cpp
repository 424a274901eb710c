#include "harness/page/side.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/compare/comparison.h"
#include "harness/core/record.h"
#include "harness/core/text/text_table.h"
#include "harness/report/console.h"

namespace gpubench::page {
namespace {

constexpr std::string_view memory_limit = "memory";
constexpr std::string_view link_limit = "link";
constexpr std::size_t longest_slug = 120;  // limited, as part of a file name

void keep_higher(KnownCeiling& kept, double value, const std::string& source) {
  if (value > kept.value) kept = {value, source};
}

void keep_higher(std::optional<KnownCeiling>& kept, double value, const std::string& source) {
  if (!kept) kept.emplace();
  keep_higher(*kept, value, source);
}

const KnownCeiling* found(const std::map<std::string, KnownCeiling>& in, const std::string& recipe) {
  const auto at = in.find(recipe);
  return at == in.end() ? nullptr : &at->second;
}

void add_published(KnownCeilings& all, const std::string& recipe, const PeakShare& peak) {
  if (!peak.peak) return;
  if (peak.limit == link_limit) {
    keep_higher(all.link, *peak.peak, peak.peak_source);
  } else if (peak.limit == memory_limit) {
    keep_higher(all.published_memory, *peak.peak, peak.peak_source);
  } else {
    keep_higher(all.published[recipe], *peak.peak, peak.peak_source);
  }
}

void add_measured(KnownCeilings& all, const CaseRecord& record) {
  if (!reliable(record) || record.c.ranks != 1 || record.c.cache == CacheMode::warm) return;
  const Derived& d = record.derived;
  if (d.headline_unit == "FLOP/s" && consists_of(record, {"gemm"}))
    keep_higher(all.measured[record.c.recipe], d.flop_per_s, record.id);
  if (d.headline_unit == "B/s" && is_stream(record)) keep_higher(all.measured_memory, d.bytes_per_s, record.id);
}

}  // namespace

const KnownCeiling* KnownCeilings::arithmetic(const std::string& recipe) const {
  const KnownCeiling* sheet = found(published, recipe);
  return sheet != nullptr ? sheet : found(measured, recipe);
}

const KnownCeiling* KnownCeilings::memory() const {
  if (published_memory) return &*published_memory;
  return measured_memory ? &*measured_memory : nullptr;
}

KnownCeilings known_ceilings(const Report& report) {
  KnownCeilings all;
  for (const CaseRecord& record : report.cases) {
    if (!ranked(record)) continue;
    if (record.derived.peak) add_published(all, record.c.recipe, *record.derived.peak);
    add_measured(all, record);
  }
  return all;
}

std::optional<double> published_limit(const CaseRecord& record) {
  const Derived& d = record.derived;
  if (!d.peak || !d.peak->peak) return std::nullopt;
  const bool bytes = d.peak->limit == memory_limit || d.peak->limit == link_limit;
  const bool same_unit = d.headline_unit == (bytes ? "B/s" : "FLOP/s");
  return same_unit ? d.peak->peak : std::nullopt;
}

bool is_arithmetic(const CaseRecord& record) { return record.derived.flop_per_s > record.derived.bytes_per_s; }

std::optional<CeilingShare> share_of_ceiling(const CaseRecord& record, const KnownCeilings& ceilings) {
  const Derived& d = record.derived;
  if (d.peak && d.peak->of_peak) return CeilingShare{*d.peak->of_peak, d.peak->limit == link_limit ? "link" : "peak"};
  if (record.c.ranks != 1) return std::nullopt;  // ceilings are measured on one rank
  const bool memory = d.peak ? d.peak->limit == memory_limit : d.headline_unit == "B/s";
  if (memory && ceilings.measured_memory)
    return CeilingShare{d.bytes_per_s / ceilings.measured_memory->value, "copy or triad"};
  const KnownCeiling* gemm = found(ceilings.measured, record.c.recipe);
  if (memory || gemm == nullptr || !is_arithmetic(record)) return std::nullopt;
  return CeilingShare{d.flop_per_s / gemm->value, "best gemm"};
}

std::string day_and_minute(std::time_t time) {
  const std::string iso = iso_time(time);  // 2026-11-21T02:34:19+00:00
  return iso.substr(0, 10) + " " + iso.substr(11, 5) + " UTC";
}

std::vector<Side> sides_of(std::span<const Report> reports, const std::map<std::string, std::string>& labels) {
  std::vector<Side> sides;
  for (const Report& report : reports) {
    const std::vector<std::string> contenders = contenders_of(report.cases);
    const bool parts = contenders.size() > 1;
    for (std::size_t i = 0; i < (parts ? contenders.size() : 1); ++i) {
      Side& side = sides.emplace_back();
      if (parts) side.part = std::make_shared<const Report>(of_contender(report, contenders[i]));
      side.report = parts ? side.part.get() : &report;
      if (parts || (!contenders.empty() && !contenders.front().empty())) side.label = contender_title(contenders[i]);
    }
  }
  for (std::size_t i = 0; i < sides.size(); ++i) {
    Side& side = sides[i];
    const RunContext& run = side.report->run;
    side.letter = sides.size() > 1 ? side_letter(i) : "";
    side.device = run.devices.empty() ? "unknown device" : run.devices.front().name;
    if (const auto found = labels.find(side.letter); found != labels.end()) side.label = found->second;
    side.name = fmt::format("{}{}{}{}{}, {}", side.letter, side.letter.empty() ? "" : ": ", side.label,
                            side.label.empty() ? "" : ", ", side.device, day_and_minute(run.started_at));
    side.ceilings = known_ceilings(*side.report);
  }
  return sides;
}

bool ranked(const CaseRecord& record) {
  return record.verdict == Verdict::pass && record.summary.median_ns > 0.0 && record.derived.headline > 0.0 &&
         std::isfinite(record.derived.headline) && !record.c.has_mode("virtual");
}

bool reliable(const CaseRecord& record) { return ranked(record) && !timing_unreliable(record.summary); }

bool is_whole_step(const CaseRecord& record) { return record.c.workload.ends_with("_step"); }

Entries entries_of(std::span<const Side> sides, const std::function<bool(const CaseRecord&)>& wanted) {
  Entries entries;
  for (const Side& side : sides) {
    for (const CaseRecord& record : side.report->cases) {
      if (ranked(record) && wanted(record)) entries.push_back({&side, &record});
    }
  }
  return entries;
}

std::vector<Entries> split(std::span<const Entry> entries, const std::function<std::string(const Entry&)>& key) {
  std::vector<Entries> parts;
  for (const auto& group : grouped(entries, key)) {
    for (Entries& part = parts.emplace_back(); const Entry* entry : group.items) part.push_back(*entry);
  }
  return parts;
}

std::vector<Entries> by_workload(std::span<const Entry> entries) {
  return split(entries, [](const Entry& e) { return workload_name(e) + " " + e.record->derived.headline_unit; });
}

Entries concatenated(std::span<const Entries> parts) {
  Entries all;
  for (const Entries& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string workload_name(const Entry& entry) { return entry.record->c.suite + "/" + entry.record->c.workload; }

std::string recipe_name(const Entry& entry) {
  return (entry.side->letter.empty() ? "" : entry.side->letter + " ") + entry.record->c.recipe;
}

std::string series_name(const Entry& entry) {
  std::string name = recipe_name(entry);
  for (const std::string& mode : entry.record->c.modes) name += " " + mode;
  return name;
}

DimsText::DimsText(std::span<const Entry> entries) {
  if (entries.empty()) return;
  const Dims& first = entries.front().record->c.dims;
  for (const auto& [name, extent] : first) {
    const bool same = std::all_of(entries.begin(), entries.end(), [&, &key = name, &value = extent](const Entry& e) {
      const Dims& dims = e.record->c.dims;
      return std::find(dims.begin(), dims.end(), std::pair(key, value)) != dims.end();
    });
    if (!same) {
      varying_.push_back(name);
    } else {
      common_ += fmt::format("{}{}={}", common_.empty() ? "" : " ", name, extent);
    }
  }
  if (varying_.empty()) common_.clear();
}

std::string DimsText::of(const CaseRecord& record) const {
  std::string text;
  for (const auto& [name, extent] : record.c.dims) {
    const bool shown = varying_.empty() || std::find(varying_.begin(), varying_.end(), name) != varying_.end();
    if (shown) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, extent);
  }
  return text;
}

std::string DimsText::common() const { return common_; }

std::string short_name(const CaseRecord& record, const DimsText& dims) {
  return record.c.label.empty() ? dims.of(record) : record.c.label;
}

std::string short_name(const CaseRecord& record) {
  return record.c.label.empty() ? to_string(record.c.dims) : record.c.label;
}

std::string slug(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, longest_slug)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    const bool upper = c >= 'A' && c <= 'Z';
    if (plain || upper) {
      out += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out.empty() ? "x" : out;
}

std::string counted(std::size_t count, std::string_view one, std::string_view several) {
  if (count == 1) return fmt::format("1 {}", one);
  return several.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, several);
}

std::string spaced(std::string_view word) {
  std::string text(word);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string reasons_text(const std::map<std::string, int>& reasons) {
  std::vector<std::string> parts;
  for (const auto& [why, count] : reasons) parts.push_back(fmt::format("{} {}", count, why));
  return joined(parts);
}

std::string percent_text(const std::optional<double>& fraction) {
  return fraction && std::isfinite(*fraction) ? fmt::format("{:.1f}%", 100.0 * *fraction) : "-";
}

}  // namespace gpubench::page
