#include "harness/measure/rank_spread.h"

#include <algorithm>
#include <map>

#include "harness/core/reliability.h"
#include "harness/measure/statistics.h"

namespace gpubench {
namespace {

constexpr double apart = 0.05;
constexpr double nearly_always = 0.8;

}  // namespace

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
  if (!(spread.straggler > apart)) return {};
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
