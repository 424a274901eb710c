#include "harness/measure/derive.h"

#include <algorithm>
#include <map>

#include "harness/core/record.h"
#include "harness/measure/links.h"
#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

void set_headline(Derived& derived, const WorkloadInfo& info) {
  switch (info.headline) {
    case PrimaryMetric::flop_per_s:
      derived.headline = derived.flop_per_s;
      derived.headline_unit = "FLOP/s";
      break;
    case PrimaryMetric::bytes_per_s:
      derived.headline = derived.bytes_per_s;
      derived.headline_unit = "B/s";
      break;
    case PrimaryMetric::items_per_s:
      derived.headline = derived.items_per_s;
      derived.headline_unit = info.item + "/s";
      break;
  }
}

}  // namespace

Derived derive(const WorkloadInfo& info, double items, const Cost& cost, const Summary& summary,
               std::span<const OpShare> breakdown) {
  Derived derived;
  derived.flop = cost.flop;
  derived.bytes = cost.bytes;
  derived.item = info.item;
  derived.breakdown.assign(breakdown.begin(), breakdown.end());
  if (summary.median_ns > 0.0) {
    const double seconds = summary.median_ns * 1e-9;
    derived.flop_per_s = cost.flop / seconds;
    derived.bytes_per_s = cost.bytes / seconds;
    derived.items_per_s = items / seconds;
    if (cost.message_bytes > 0.0 && breakdown.empty()) {
      derived.collective = CollectiveRates{cost.message_bytes, cost.message_bytes / seconds, derived.bytes_per_s};
    }
    double alone_ns = 0.0;
    for (OpShare& op : derived.breakdown) {
      op.share = op.median_ns / summary.median_ns;
      alone_ns += op.median_ns;
    }
    if (!breakdown.empty()) derived.remainder = (summary.median_ns - alone_ns) / summary.median_ns;
  }
  set_headline(derived, info);
  return derived;
}

void add_energy(Derived& derived, std::optional<double> joules, const Summary& summary) {
  derived.energy_j = joules;
  const double work = derived.headline * summary.median_ns * 1e-9;
  if (joules && work > 0.0) derived.energy_per_work_j = *joules / work;
}

std::optional<RankSpread> rank_spread(std::span<const RoundRecord> rounds) {
  std::vector<double> straggles;
  std::map<int, int> slowest;
  for (const RoundRecord& round : rounds) {
    if (!round.valid || !round.times.ranks || round.times.ranks->size() < 2) continue;
    const std::vector<RankTimes>& ranks = *round.times.ranks;
    for (std::size_t sample = 0; sample < ranks.front().ns.size(); ++sample) {
      std::vector<double> times;
      for (const RankTimes& rank : ranks) times.push_back(rank.ns.at(sample));
      const auto last = std::max_element(times.begin(), times.end());
      ++slowest[static_cast<int>(last - times.begin())];
      straggles.push_back(*last / median(times) - 1.0);
    }
  }
  if (straggles.empty()) return std::nullopt;
  const auto most = std::max_element(slowest.begin(), slowest.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  RankSpread spread;
  spread.straggler = median(straggles);
  spread.slowest = most->first;
  spread.slowest_share = most->second / static_cast<double>(straggles.size());
  return spread;
}

std::vector<std::string> straggler_flags(const RankSpread& spread) {
  if (spread.partners || !(spread.straggler > alike)) return {};
  if (spread.slowest_share > nearly_always) return {"rank " + std::to_string(spread.slowest) + " straggles"};
  return {"stragglers"};
}

void add_efficiency(std::span<CaseRecord> records, int units_of_one) {
  for (CaseRecord& record : records) {
    if (!record.derived.ranks || record.verdict != Verdict::pass || timing_unreliable(record.summary)) continue;
    for (const CaseRecord& alone : records) {
      const bool same = alone.c.ranks == 1 && alone.verdict == Verdict::pass && !timing_unreliable(alone.summary) &&
                        alone.c.id_without_ranks() == record.c.id_without_ranks();
      if (!same || !(alone.derived.items_per_s > 0.0) || record.derived.ranks->units == 0) continue;
      record.derived.ranks->efficiency =
          record.derived.items_per_s * units_of_one / (record.derived.ranks->units * alone.derived.items_per_s);
    }
  }
}

}  // namespace gpubench
