// A cluster on paper: how fast its devices work, and how long its links take for a collective.
//
// A collective takes the best of the ways that NCCL has (harness/network/collective_time.h), with the bytes on the wire
// (reference/ops/collective.h) through each rank's link in its node. Of a message on k nodes, (k - 1) / k leave each
// node, twice in an all_reduce, through its ranks' links to the others together; all of what is broadcast enters each;
// and of an exchange in which everybody sends to everybody, each rank's own message goes through its own link. Behind
// these is what a node's ranks share, whatever collective they are in: an uplink to the other nodes and one back.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "harness/core/mesh.h"
#include "harness/core/program.h"
#include "reference/ops/definition.h"

namespace gpubench {

struct Cluster {
  double flop_per_s = 500e12;          ///< of a device
  double bytes_per_s = 3e12;           ///< of its memory
  double launch_s = 2e-6;              ///< what an op takes at least
  double node_bytes_per_s = 450e9;     ///< of a device to others of its node, each way
  double cluster_bytes_per_s = 50e9;   ///< of a device to other nodes, each way
  int ranks_per_node = 8;              ///< ranks 0 to 7 are one node, and so on
  double oversubscription = 1.0;       ///< by how much a node's devices, all at once, could overfill its uplink; from 1
  std::map<int, double> slower{};      ///< ranks that take so many times as long for their own ops
  std::map<int, double> stops{};       ///< ranks that stop at this time, in seconds
  std::map<int, double> slow_links{};  ///< ranks whose links, in the node and to others, take so many times as long
  std::map<int, double> cuts{};        ///< ranks whose links are cut at this time, in seconds
};

/// An op of one rank that is not slower than others: the longer of its work and its traffic, and no less than a launch.
[[nodiscard]] double compute_s(const Cluster& cluster, const Cost& cost);

/// What a collective takes where no other uses the same links, from when all members have come until all are done.
struct CollectiveTime {
  double latency_s = 0.0;  ///< first, without use of links
  double wire_s = 0.0;
  double share = 0.0;             ///< meanwhile, of each of these:
  std::vector<int> uplinks = {};  ///< of node i: 2 i from it to others, 2 i + 1 back
  [[nodiscard]] double seconds() const { return latency_s + wire_s; }
};

/// NCCL chooses a way by what links can do at best: it knows of none that is slow or shared.
[[nodiscard]] CollectiveTime collective_time(const Cluster& cluster, const OpCall& call, const Cost& cost);

}  // namespace gpubench
