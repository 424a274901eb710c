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

void add(KnownCeilings& all, const std::string& recipe, const PeakShare& peak) {
  if (peak.limit == link_limit) {
    if (peak.peak) keep_higher(all.link, *peak.peak, peak.peak_source);
    return;
  }
  const bool memory = peak.limit == memory_limit;
  if (peak.peak && memory) keep_higher(all.published_memory, *peak.peak, peak.peak_source);
  if (peak.peak && !memory) keep_higher(all.published[recipe], *peak.peak, peak.peak_source);
  if (!peak.of_best || !(*peak.of_best > 0.0)) return;
  const double best = peak.rate / *peak.of_best;
  if (memory) {
    keep_higher(all.measured_memory, best, peak.best_case);
  } else {
    keep_higher(all.measured[recipe], best, peak.best_case);
  }
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
    if (ranked(record) && record.derived.peak) add(all, record.c.recipe, *record.derived.peak);
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

}  // namespace gpubench::page
