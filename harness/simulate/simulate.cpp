#include "harness/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "harness/simulate/shared_links.h"
#include "reference/ops/definition.h"

namespace gpubench {
namespace {

struct Lane {
  const std::vector<LaneStep>* steps = nullptr;
  std::vector<double> ends{};  // end times of the steps begun so far

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
    advance_all();
    while (!events_.empty()) {
      next_event();
      advance_all();
    }
    conclude();
    return std::move(result_);
  }

 private:
  /// A running collective between nodes.
  struct InFlight {
    double begin_s = 0.0;
    double cut_s = HUGE_VAL;
    double event_s = 0.0;  ///< begin of its bytes, then their end or the cut
    bool flows = false;
  };

  // Begins all steps that do not wait for a collective in flight.
  void advance_all() {
    while (!todo_.empty()) {
      const int rank = todo_.front();
      todo_.pop_front();
      while (advance_compute(rank) || reaches_collective(rank)) {
      }
    }
  }

  [[nodiscard]] std::size_t launch_of(const LaneStep& step) const { return launch_.at(step.work); }
  [[nodiscard]] const RankGroup& members_of(std::size_t launch) const {
    return of_group(program_.launches[launch]).op.members;
  }

  /// Earliest begin of the step; nullopt: the other lane has not reached waits_for.
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

  /// Whether the rank reaches its next collective as the last member.
  bool reaches_collective(int rank) {
    Lane& own = communication_[static_cast<std::size_t>(rank)];
    const LaneStep* const step = own.next();
    if (step == nullptr) return false;
    const std::size_t launch = launch_of(*step);
    std::map<int, double>& came = meetings_[launch];
    if (came.contains(rank)) return false;  // waits for others, or the collective runs
    const std::optional<double> ready = ready_s(own, compute_[static_cast<std::size_t>(rank)], *step);
    if (!ready || stops_before(rank, *ready)) return false;
    came.emplace(rank, *ready);
    if (static_cast<int>(came.size()) < members_of(launch).size()) return false;
    double all_s = 0.0;
    for (const auto& [member, at] : came) all_s = std::max(all_s, at);
    for (const auto& [member, at] : came) result_.ranks[static_cast<std::size_t>(member)].waiting_s += all_s - at;
    begin(launch, all_s);
    return true;
  }

  void begin(std::size_t launch, double now) {
    InFlight flight{now};
    for (const auto& [rank, at] : cluster_.cuts) {
      if (at >= flight.cut_s || !members_of(launch).contains(rank)) continue;
      flight.cut_s = at;
      cuts_[launch] = {rank, at};
    }
    const auto uses = program_.between_nodes.find(launch);
    if (uses == program_.between_nodes.end()) {
      const double end_s = now + program_.seconds[launch];
      if (end_s <= flight.cut_s) end(launch, now, end_s);
      return;
    }
    flight.event_s = now + uses->second.latency_s;
    if (flight.event_s > flight.cut_s) return;
    in_flight_.emplace(launch, flight);
    events_.emplace(flight.event_s, launch);
  }

  void end(std::size_t launch, double begin_s, double end_s) {
    const double alone_s = program_.seconds[launch], contention_s = std::max(0.0, end_s - (begin_s + alone_s));
    for (const int member : members_of(launch).members()) {
      SimulatedRank& of = result_.ranks[static_cast<std::size_t>(member)];
      of.communication_s += alone_s + contention_s;
      of.contention_s += contention_s;
      communication_[static_cast<std::size_t>(member)].ends.push_back(end_s);
      todo_.push_back(member);
    }
    cuts_.erase(launch);
  }

  // Processes all events of one time before the shares are computed.
  void next_event() {
    const double now = events_.begin()->first;
    while (!events_.empty() && events_.begin()->first == now) {
      const std::size_t launch = events_.begin()->second;
      events_.erase(events_.begin());
      InFlight& flight = in_flight_.at(launch);
      if (!flight.flows) {
        flight.flows = true;
        const CollectiveTime& uses = program_.between_nodes.at(launch);
        links_.begin(launch, uses.uplinks, uses.share, flight.begin_s + program_.seconds[launch]);
        expect(launch);
        continue;
      }
      const double end_s = links_.end_s(launch), begin_s = flight.begin_s;
      links_.end(launch);
      in_flight_.erase(launch);
      if (end_s <= now) end(launch, begin_s, end_s);
    }
    for (const std::size_t launch : links_.settle(now)) {
      events_.erase({in_flight_.at(launch).event_s, launch});
      expect(launch);
    }
  }

  void expect(std::size_t launch) {
    InFlight& flight = in_flight_.at(launch);
    flight.event_s = std::min(links_.end_s(launch), flight.cut_s);
    events_.emplace(flight.event_s, launch);
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
        StuckLane stuck{static_cast<int>(rank), *step->label};
        const std::size_t launch = launch_of(*step);
        const std::map<int, double>& came = meetings_[launch];
        if (lane == &communication_[rank] && came.contains(stuck.rank)) {
          for (const int member : members_of(launch).members()) {
            if (!came.contains(member)) stuck.awaited.push_back(member);
          }
          if (const auto cut = cuts_.find(launch); cut != cuts_.end()) stuck.cut = cut->second;
        }
        result_.stuck.push_back(std::move(stuck));
      }
    }
  }

  const SimulatedProgram& program_;
  const Cluster& cluster_;
  std::unordered_map<const Launch*, std::size_t> launch_;
  std::vector<Lane> compute_, communication_;
  std::vector<std::map<int, double>> meetings_;  // by launch: arrived member -> time
  std::deque<int> todo_;
  SharedLinks links_;
  std::unordered_map<std::size_t, InFlight> in_flight_;
  std::set<std::pair<double, std::size_t>> events_;     // one per collective in flight
  std::map<std::size_t, std::pair<int, double>> cuts_;  // unfinished collective -> rank of the cut link, time
  Simulated result_;
};

}  // namespace

SimulatedProgram lanes_of(const Program& program, const Cluster& cluster, const MeasuredOps& measured) {
  SimulatedProgram all;
  std::vector<int> timed;
  int ranks = program.mesh().ranks();  // 1 for a single collective
  for (int op = 0; op < static_cast<int>(program.ops().size()); ++op) {
    const OpCall& call = program.op(op);
    if (call.phase != Phase::timed) continue;
    timed.push_back(op);
    const Cost cost = cost_of(program, call);
    RankOp of{call.group, call.label};
    if (call.group.size() > 1) {
      CollectiveTime takes = collective_time(cluster, call, cost);
      all.seconds.push_back(takes.seconds());
      if (!takes.uplinks.empty()) all.between_nodes.emplace(all.launches.size(), std::move(takes));
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
