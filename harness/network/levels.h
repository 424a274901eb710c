// A network in levels: nodes, groups of nodes under a switch or in a pod, and the whole cluster.
//
// A level has a size, and a bandwidth per device while all devices below send across it. A node is an NVLink domain.
// Fat trees with F-fold oversubscription between pods have 1/F of the bandwidth there; rail switches join as many nodes
// as they have ports.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "harness/network/collective_time.h"

namespace gpubench {

struct NetworkLevel {
  std::int64_t devices = 0;  ///< joined by the level
  double bytes_per_s = 0.0;  ///< per device and direction
};
inline constexpr std::int64_t all_devices = std::numeric_limits<std::int64_t>::max();

/// By size: the first level is a node, the last joins `all_devices`.
struct Network {
  std::vector<NetworkLevel> levels{{8, 450e9}, {all_devices, 50e9}};  ///< NVLink 4, and 400 Gbit/s for each device
};

/// `beyond`: levels above the node; {"256:50", "25"} is 50 GB/s up to 256 devices and 25 GB/s beyond. Throws
/// std::invalid_argument.
[[nodiscard]] Network parse_network(const NetworkLevel& node, std::span<const std::string> beyond);

/// "450 GB/s within 8 devices, 50 within 256, 25 beyond"
[[nodiscard]] std::string to_string(const Network& network);

/// "node"; "to 256" (devices); last level: "beyond 256", or "network" directly above nodes.
[[nodiscard]] std::string level_name(const Network& network, std::size_t level);

/// A group with a member on every `apart`-th device.
struct Scattered {
  std::int64_t members = 1, apart = 1;
};

/// Number of domains of each level that the group spans; the last is 1. Domains are filled evenly: 64 members in
/// domains of 9 take 8 domains of 8.
[[nodiscard]] std::vector<std::int64_t> domains_of(const Scattered& group, const Network& network);

[[nodiscard]] InNodes in_nodes(const Scattered& group, const Network& network);

/// Seconds on each level to reduce and gather `bytes` per member: within nodes, then each member's remainder between
/// nodes, and so on; a ring takes the same. With uneven domains, the one with the fewest members is the slowest.
[[nodiscard]] std::vector<double> seconds_by_level(double bytes, const Scattered& group, const Network& network);

}  // namespace gpubench
