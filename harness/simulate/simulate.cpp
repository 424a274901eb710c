#include "harness/simulate/simulate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>

#include "reference/ops/definition.h"

namespace gpubench {
namespace {

/// One lane of one rank: how far it has come.
struct Lane {
  const std::vector<LaneStep>* steps = nullptr;
  std::vector<double> ends{};  // of the steps that have begun

  [[nodiscard]] const LaneStep* next() const { return ends.size() < steps->size() ? &(*steps)[ends.size()] : nullptr; }
  [[nodiscard]] double free_s() const { return ends.empty() ? 0.0 : ends.back(); }
};

const GroupLaunch& of_group(const Launch& launch) { return static_cast<const GroupLaunch&>(*launch); }

class Simulation {
 public:
  Simulation(const SimulatedProgram& program, const Cluster& cluster) : program_(program), cluster_(cluster) {
    for (std::size_t i = 0; i < program.launches.size(); ++i) launch_[&of_group(program.launches[i]).inner] = i;
    meetings_.resize(program.launches.size());
    for (const RankProgram& rank : program.ranks) {
      compute_.push_back({&rank.compute});
      communication_.push_back({&rank.communication});
    }
    result_.ranks.resize(program.ranks.size());
  }

  Simulated run() {
    for (int rank = 0; rank < static_cast<int>(compute_.size()); ++rank) todo_.push_back(rank);
    while (!todo_.empty()) {
      const int rank = todo_.front();
      todo_.pop_front();
      while (advance_compute(rank) || advance_communication(rank)) {
      }
    }
    conclude();
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::size_t launch_of(const LaneStep& step) const { return launch_.at(step.work); }
  [[nodiscard]] const RankGroup& members_of(std::size_t launch) const {
    return of_group(program_.launches[launch]).op.members;
  }

  /// When the step's lane may begin it; none while the other lane has not come so far.
  [[nodiscard]] static std::optional<double> ready_s(const Lane& own, const Lane& other, const LaneStep& step) {
    if (other.ends.size() < step.waits_for) return std::nullopt;
    return step.waits_for == 0 ? own.free_s() : std::max(own.free_s(), other.ends[step.waits_for - 1]);
  }

  [[nodiscard]] bool stops_before(int rank, double seconds) {
    const auto stop = cluster_.stops.find(rank);
    if (stop == cluster_.stops.end() || seconds < stop->second) return false;
    if (std::ranges::find(result_.stopped, rank) == result_.stopped.end()) result_.stopped.push_back(rank);
    return true;
  }

  bool advance_compute(int rank) {
    Lane& own = compute_[static_cast<std::size_t>(rank)];
    const LaneStep* const step = own.next();
    if (step == nullptr) return false;
    const std::optional<double> begin = ready_s(own, communication_[static_cast<std::size_t>(rank)], *step);
    if (!begin || stops_before(rank, *begin)) return false;
    const auto slower = cluster_.slower.find(rank);
    const double takes = program_.seconds[launch_of(*step)] * (slower == cluster_.slower.end() ? 1.0 : slower->second);
    result_.ranks[static_cast<std::size_t>(rank)].compute_s += takes;
    own.ends.push_back(*begin + takes);
    return true;
  }

  /// Comes to the next collective; the last member to come lets all of them go on.
  bool advance_communication(int rank) {
    Lane& own = communication_[static_cast<std::size_t>(rank)];
    const LaneStep* const step = own.next();
    if (step == nullptr) return false;
    const std::size_t launch = launch_of(*step);
    std::map<int, double>& came = meetings_[launch];
    if (came.contains(rank)) return false;  // and waits
    const std::optional<double> begin = ready_s(own, compute_[static_cast<std::size_t>(rank)], *step);
    if (!begin || stops_before(rank, *begin)) return false;
    came.emplace(rank, *begin);
    if (static_cast<int>(came.size()) < members_of(launch).size()) return false;
    double all_s = 0.0;
    for (const auto& [member, at] : came) all_s = std::max(all_s, at);
    for (const auto& [member, at] : came) {
      SimulatedRank& of = result_.ranks[static_cast<std::size_t>(member)];
      of.waiting_s += all_s - at;
      of.communication_s += program_.seconds[launch];
      communication_[static_cast<std::size_t>(member)].ends.push_back(all_s + program_.seconds[launch]);
      if (member != rank) todo_.push_back(member);
    }
    return true;
  }

  void conclude() {
    std::ranges::sort(result_.stopped);
    for (std::size_t rank = 0; rank < compute_.size(); ++rank) {
      SimulatedRank& of = result_.ranks[rank];
      of.end_s = std::max(compute_[rank].free_s(), communication_[rank].free_s());
      result_.end_s = std::max(result_.end_s, of.end_s);
      if (std::ranges::binary_search(result_.stopped, static_cast<int>(rank))) continue;
      for (const Lane* lane : {&compute_[rank], &communication_[rank]}) {
        const LaneStep* const step = lane->next();
        if (step == nullptr) continue;
        StuckLane stuck{static_cast<int>(rank), *step->label, {}};
        const std::size_t launch = launch_of(*step);
        const std::map<int, double>& came = meetings_[launch];
        if (lane == &communication_[rank] && came.contains(stuck.rank)) {
          for (const int member : members_of(launch).members()) {
            if (!came.contains(member)) stuck.awaited.push_back(member);
          }
        }
        result_.stuck.push_back(std::move(stuck));
      }
    }
  }

  const SimulatedProgram& program_;
  const Cluster& cluster_;
  std::unordered_map<const Launch*, std::size_t> launch_;
  std::vector<Lane> compute_, communication_;    // by rank
  std::vector<std::map<int, double>> meetings_;  // by launch: members that have come, and when
  std::deque<int> todo_;                         // ranks that may go on
  Simulated result_;
};

// "ranks 0, 1, 5"; of many the first and how many more.
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

std::string Simulated::why_stuck() const {
  if (stuck.empty()) return "";
  std::map<std::string, std::vector<int>> at;  // collectives with members that came
  std::map<std::string, std::vector<int>> awaited;
  std::map<int, std::string> in;
  for (const StuckLane& lane : stuck) {
    if (lane.awaited.empty()) continue;
    at[lane.label].push_back(lane.rank);
    awaited[lane.label] = lane.awaited;
    in[lane.rank] = lane.label;
  }
  std::string text;
  for (const auto& [label, ranks] : at) {
    text += fmt::format("{}{} in '{}', waiting for ", text.empty() ? "" : "; ", ranks_text(ranks), label);
    std::vector<int> others;
    for (const int rank : awaited[label]) {
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

SimulatedProgram lanes_of(const Program& program, const Cluster& cluster, const MeasuredOps& measured) {
  SimulatedProgram all;
  std::vector<int> timed;
  int ranks = program.mesh().ranks();  // one, where a collective stands by itself
  for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
    const OpCall& call = program.op(op);
    if (call.phase != Phase::timed) continue;
    timed.push_back(op);
    const Cost cost = cost_of(program, call);
    RankOp of{call.group, call.label};
    if (call.group.size() > 1) {
      all.seconds.push_back(collective_s(cluster, call.kind, cost, call.group));
    } else {
      if (call.group.empty()) of.members = RankGroup({rank_of(program, call).value_or(0)});
      const auto known = measured.find(std::string_view(call.label).substr(0, call.label.rfind('@')));
      all.measured += known != measured.end() ? 1 : 0;
      all.seconds.push_back(known != measured.end() ? known->second : compute_s(cluster, cost));
    }
    for (const int member : of.members.members()) ranks = std::max(ranks, member + 1);
    all.launches.push_back(std::make_shared<GroupLaunch>(nullptr, std::move(of)));
  }
  all.ranks = rank_programs(all.launches, {program.dependencies(timed), LaunchMode::stream}, ranks);
  return all;
}

Simulated simulate(const SimulatedProgram& program, const Cluster& cluster) {
  return Simulation(program, cluster).run();
}

}  // namespace gpubench
