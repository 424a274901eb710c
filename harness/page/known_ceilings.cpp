#include "harness/page/known_ceilings.h"

#include "harness/page/side.h"

namespace gpubench::page {
namespace {

constexpr std::string_view memory_limit = "memory";
constexpr std::string_view link_limit = "link";

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

std::optional<CeilingShare> share_of_ceiling(const CaseRecord& record, const KnownCeilings& ceilings) {
  const Derived& d = record.derived;
  if (d.peak && d.peak->of_peak) return CeilingShare{*d.peak->of_peak, d.peak->limit == link_limit ? "link" : "peak"};
  if (record.c.ranks != 1) return std::nullopt;  // what was measured is one rank's
  const bool memory = d.peak ? d.peak->limit == memory_limit : d.headline_unit == "B/s";
  if (memory && ceilings.measured_memory)
    return CeilingShare{d.bytes_per_s / ceilings.measured_memory->value, "copy or triad"};
  const KnownCeiling* gemm = found(ceilings.measured, record.c.recipe);
  if (memory || gemm == nullptr || !(d.flop_per_s > 0.0)) return std::nullopt;
  return CeilingShare{d.flop_per_s / gemm->value, "best gemm"};
}

}  // namespace gpubench::page
