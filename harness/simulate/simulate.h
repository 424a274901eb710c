// The programs of all ranks in virtual time, without a device.
//
// Ranks have the lanes of real ones (harness/run/rank_group.h): steps in order, with waits for the other lane. A
// collective begins when its last member arrives. A rank is in one collective at a time; collectives between nodes
// share uplinks. Results are deterministic.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/core/communicator.h"
#include "harness/core/program.h"
#include "harness/run/rank_group.h"
#include "harness/simulate/cluster.h"

namespace gpubench {

/// Seconds of one rank.
struct SimulatedRank {
  double end_s = 0.0;
  double compute_s = 0.0;        ///< in its own ops
  double communication_s = 0.0;  ///< in collectives, without waiting_s
  double contention_s = 0.0;     ///< part of communication_s caused by other collectives on the same links
  double waiting_s = 0.0;        ///< for the other members of collectives
};

/// A lane that cannot continue.
struct StuckLane {
  int rank = 0;
  std::string label;
  std::vector<int> awaited{};  ///< missing members of its collective
  /// If all members have arrived: the rank of the cut link, and the time. Neither: the lane waits for the other lane.
  std::optional<std::pair<int, double>> cut{};
};

struct Simulated {
  std::vector<SimulatedRank> ranks;
  double end_s = 0.0;
  std::vector<StuckLane> stuck;  ///< ascending by rank
  std::vector<int> stopped;      ///< ranks that Cluster::stops stopped before their end

  /// Share of the run that is not compute of the busiest rank.
  [[nodiscard]] double exposed() const;
  /// "ranks 0, 1 in 'bucket0', waiting for rank 3, which stopped"; empty if no lane is stuck.
  [[nodiscard]] std::string stuck_reason() const;
};

/// Programs of all ranks with the time of each launch.
struct SimulatedProgram {
  std::vector<Launch> launches;  ///< referenced by the steps of `ranks`
  std::vector<RankProgram> ranks;
  std::vector<double> seconds;                            ///< by launch, on a normal rank without contention
  std::map<std::size_t, CollectiveTime> between_nodes{};  ///< by launch, for collectives that use uplinks
  int measured = 0;                                       ///< number of compute ops with a measured time
};
/// Seconds by the label of an op without its rank: "x" stands for "x@3".
using MeasuredOps = std::map<std::string, double, std::less<>>;
/// The timed ops of a program of all ranks, with measured times, else with times from the textbook's costs.
[[nodiscard]] SimulatedProgram lanes_of(const Program& program, const Cluster& cluster,
                                        const MeasuredOps& measured = {});

[[nodiscard]] Simulated simulate(const SimulatedProgram& program, const Cluster& cluster);

}  // namespace gpubench
