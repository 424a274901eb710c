// Model of a cluster: speed of its devices, and time of a collective on its links.
//
// Latency and bandwidth are of NCCL's fastest algorithm (harness/network/collective_time.h). Within a node, each rank's
// link carries the wire bytes (reference/ops/collective.h). Of a message on k nodes, (k - 1) / k leave each node, twice
// in an all_reduce, through the links of its ranks together. A broadcast enters each node whole. In all-to-all
// exchanges, each rank sends through its own link. All collectives of a node share one uplink in each direction.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "harness/core/mesh.h"
#include "harness/core/program.h"
#include "reference/ops/definition.h"

namespace gpubench {

struct Cluster {
  double flop_per_s = 500e12;          ///< per device
  double bytes_per_s = 3e12;           ///< memory bandwidth per device
  double launch_s = 2e-6;              ///< minimum time of an op
  double node_bytes_per_s = 450e9;     ///< per device and direction, within a node
  double cluster_bytes_per_s = 50e9;   ///< per device and direction, to other nodes
  int ranks_per_node = 8;              ///< ranks 0 to 7 are one node, and so on
  double oversubscription = 1.0;       ///< sum of a node's device links / bandwidth of its uplink; at least 1
  std::map<int, double> slower{};      ///< rank -> factor on the time of its compute ops
  std::map<int, double> stops{};       ///< rank -> time at which it stops, seconds
  std::map<int, double> slow_links{};  ///< rank -> factor on the time of its links
  std::map<int, double> cuts{};        ///< rank -> time at which its links are cut, seconds
};

/// Seconds of an op on a normal rank: the maximum of FLOP time, memory time and launch_s.
[[nodiscard]] double compute_s(const Cluster& cluster, const Cost& cost);

/// A collective without contention, from the arrival of its last member to its end.
struct CollectiveTime {
  double latency_s = 0.0;  ///< before the links are used
  double wire_s = 0.0;
  double share = 0.0;             ///< of each uplink, used during wire_s
  std::vector<int> uplinks = {};  ///< of node i: 2 i out of it, 2 i + 1 into it
  [[nodiscard]] double seconds() const { return latency_s + wire_s; }
};

/// NCCL's choice assumes nominal links: slow or shared links do not change it.
[[nodiscard]] CollectiveTime collective_time(const Cluster& cluster, const OpCall& call, const Cost& cost);

}  // namespace gpubench
