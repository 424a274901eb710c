// A cluster on paper: how fast its devices work, and how long its links take for a collective.
//
// A collective takes the best of the ways that NCCL has (harness/network/collective_time.h), with the bytes on the wire
// (reference/ops/collective.h) through each rank's link in its node, and those that leave a node, 2 (k - 1) / k of the
// message or (k - 1) / k, through its ranks' links to the others together.
#pragma once

#include <cstdint>
#include <map>

#include "harness/core/mesh.h"
#include "reference/ops/definition.h"

namespace gpubench {

struct Cluster {
  double flop_per_s = 500e12;         ///< of a device
  double bytes_per_s = 3e12;          ///< of its memory
  double launch_s = 2e-6;             ///< what an op takes at least
  double node_bytes_per_s = 450e9;    ///< of a device to others of its node, each way
  double cluster_bytes_per_s = 50e9;  ///< of a device to other nodes, each way
  int ranks_per_node = 8;             ///< ranks 0 to 7 are one node, and so on
  std::map<int, double> slower{};     ///< ranks that take so many times as long for their own ops
  std::map<int, double> stops{};      ///< ranks that stop at this time, in seconds
};

/// An op of one rank that is not slower than others: the longer of its work and its traffic, and no less than a launch.
[[nodiscard]] double compute_s(const Cluster& cluster, const Cost& cost);

/// From when all members have come until all are done; of a collective's `cost`.
[[nodiscard]] double collective_s(const Cluster& cluster, OpKind kind, const Cost& cost, const RankGroup& members);

}  // namespace gpubench
