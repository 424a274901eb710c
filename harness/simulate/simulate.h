// The programs of all ranks in virtual time: what each does when, without a device.
//
// Ranks have the two lanes that real ones have (harness/run/rank_group.h, which makes them): steps in order, and waits
// for the other lane where data flows. A collective begins when the last of its members has come to it. A rank is in
// one collective at a time, so that its own links serve one; collectives of several nodes share these nodes' uplinks.
// Nothing depends on this machine's time, so that the same program and cluster always give the same answer.
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

/// A rank's run. Times in seconds from the start.
struct SimulatedRank {
  double end_s = 0.0;
  double compute_s = 0.0;        ///< busy with its own ops
  double communication_s = 0.0;  ///< in collectives, its waiting for others not counted
  double contention_s = 0.0;     ///< of that, what they took longer than alone on their links
  double waiting_s = 0.0;        ///< in collectives, for others to come
};

/// A lane that comes no further.
struct StuckLane {
  int rank = 0;
  std::string label;           ///< of the step that it is at
  std::vector<int> awaited{};  ///< members of that collective that have not come
  /// Where all have come: the member whose link was cut, and when. Neither: it waits for its other lane.
  std::optional<std::pair<int, double>> cut{};
};

struct Simulated {
  std::vector<SimulatedRank> ranks;
  double end_s = 0.0;
  /// Empty where all ranks end. Else all lanes that stand, ascending by rank.
  std::vector<StuckLane> stuck;
  std::vector<int> stopped;  ///< ranks that the cluster stops before their end

  /// Of the whole run, what the slowest rank's own ops don't explain.
  [[nodiscard]] double exposed() const;
  /// "ranks 0 to 7 are in 'bucket0' and wait for rank 3, which is in 'bucket1'"; empty where nothing is stuck.
  [[nodiscard]] std::string stuck_reason() const;
};

/// What ranks run, and how long each step takes.
struct SimulatedProgram {
  std::vector<Launch> launches;  ///< what the steps of `ranks` point to
  std::vector<RankProgram> ranks;
  std::vector<double> seconds;  ///< by launch; at a rank that is not slower than others, on links that no other uses
  std::map<std::size_t, CollectiveTime> between_nodes{};  ///< by launch; the others leave uplinks alone
  int measured = 0;  ///< of a rank's own ops, so many have a length that was measured
};
/// Seconds by an op's label on one rank: those of "x" are those of "x@3".
using MeasuredOps = std::map<std::string, double, std::less<>>;
/// The timed ops of a program that holds all its ranks, at the lengths that were measured, else at the textbook's
/// costs.
[[nodiscard]] SimulatedProgram lanes_of(const Program& program, const Cluster& cluster,
                                        const MeasuredOps& measured = {});

[[nodiscard]] Simulated simulate(const SimulatedProgram& program, const Cluster& cluster);

}  // namespace gpubench
