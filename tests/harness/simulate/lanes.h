// Builds rank programs for the simulation by hand.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/simulate/simulate.h"

namespace gpubench {

inline OpCall collective_call(const OpKind& kind, RankGroup members) {
  OpCall call;
  call.kind = kind;
  if (kind.attributes != nullptr) call.attributes = kind.attributes();
  call.group = std::move(members);
  return call;
}
inline double collective_s(const Cluster& cluster, const OpKind& kind, const Cost& cost, const RankGroup& members) {
  return collective_time(cluster, collective_call(kind, members), cost).seconds();
}

class Lanes {
 public:
  std::size_t launch(const std::string& label, std::vector<int> members, double seconds) {
    const RankGroup group(std::move(members));
    program_.launches.push_back(std::make_shared<GroupLaunch>(nullptr, RankOp{group, label}));
    program_.seconds.push_back(seconds);
    return program_.launches.size() - 1;
  }
  /// Adds a collective that uses uplinks.
  std::size_t launch(const std::string& label, std::vector<int> members, const CollectiveTime& time) {
    const std::size_t launch = this->launch(label, std::move(members), time.seconds());
    program_.between_nodes.emplace(launch, time);
    return launch;
  }
  void compute(std::size_t rank, std::size_t launch, std::uint64_t after = 0) {
    of(rank).compute.push_back(step(launch, after));
  }
  void communicate(std::size_t rank, std::size_t launch, std::uint64_t after = 0) {
    of(rank).communication.push_back(step(launch, after));
  }
  [[nodiscard]] Simulated run(const Cluster& cluster = {}) const { return simulate(program_, cluster); }

 private:
  RankProgram& of(std::size_t rank) {
    if (program_.ranks.size() <= rank) program_.ranks.resize(rank + 1);
    return program_.ranks[rank];
  }
  [[nodiscard]] LaneStep step(std::size_t launch, std::uint64_t after) const {
    const auto& of = static_cast<const GroupLaunch&>(*program_.launches[launch]);
    return {&of.inner, &of.op.label, after};
  }
  SimulatedProgram program_;
};

}  // namespace gpubench
