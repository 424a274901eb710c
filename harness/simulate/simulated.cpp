#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>

#include "harness/simulate/simulate.h"

namespace gpubench {
namespace {

// "ranks 0, 1, 5"; of more than six: the first six "and 10 more".
std::string ranks_text(std::span<const int> ranks) {
  constexpr std::size_t most = 6;
  const std::span<const int> first = ranks.first(std::min(most, ranks.size()));
  const std::string more = ranks.size() > most ? fmt::format(" and {} more", ranks.size() - most) : "";
  return fmt::format("rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(first, ", "), more);
}

}  // namespace

double Simulated::exposed() const {
  double busiest = 0.0;
  for (const SimulatedRank& rank : ranks) busiest = std::max(busiest, rank.compute_s);
  return end_s > 0.0 ? 1.0 - busiest / end_s : 0.0;
}

std::string Simulated::stuck_reason() const {
  if (stuck.empty()) return "";
  struct Meeting {
    std::vector<int> came;
    const StuckLane* lane = nullptr;
  };
  std::map<std::pair<bool, std::string_view>, Meeting> meetings;  // cut links first: they are the cause of the others
  for (const StuckLane& lane : stuck) {
    if (lane.awaited.empty() && !lane.cut) continue;
    Meeting& of = meetings[{!lane.cut, lane.label}];
    of.came.push_back(lane.rank);
    of.lane = &lane;
  }
  std::string text;
  for (const auto& [key, of] : meetings) {
    text += fmt::format("{}{} in '{}'", text.empty() ? "" : "; ", ranks_text(of.came), key.second);
    if (of.lane->cut) {
      text += fmt::format(": rank {}'s link was cut at {:g} s", of.lane->cut->first, of.lane->cut->second);
      continue;
    }
    text += ", waiting for ";
    std::vector<int> others;
    for (const int rank : of.lane->awaited) {
      if (std::ranges::binary_search(stopped, rank)) {
        text += fmt::format("rank {}, which stopped, ", rank);
      } else {
        others.push_back(rank);
      }
    }
    if (!others.empty()) text += ranks_text(others) + ", ";
    text.resize(text.size() - 2);
  }
  return text.empty() ? fmt::format("rank {} waits at '{}' for its other lane", stuck.front().rank, stuck.front().label)
                      : text;
}

}  // namespace gpubench
