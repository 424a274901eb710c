// A network in levels: nodes, groups of nodes that a switch or a pod joins, and all there is.
//
// Every level has a size and the bandwidth of a device while all devices of the level below send beyond it at once.
// That is all that sets apart what networks are called: an NVLink domain is a node, whatever it is mounted in; a fat
// tree that is oversubscribed F times beyond pods has an F-th there; the switches of rails join as many nodes as they
// have ports, where those of racks join a few.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "harness/network/collective_time.h"

namespace gpubench {

struct NetworkLevel {
  std::int64_t devices = 0;  ///< that it joins
  double bytes_per_s = 0.0;  ///< of a device, each way
};
inline constexpr std::int64_t all_devices = std::numeric_limits<std::int64_t>::max();

/// By size: the first level is a node, the last joins `all_devices`.
struct Network {
  std::vector<NetworkLevel> levels{{8, 450e9}, {all_devices, 50e9}};  ///< NVLink 4, and 400 Gbit/s for each device
};

/// A node, and what is beyond: {"256:50", "25"} is 50 GB/s up to 256 devices and 25 beyond. Throws
/// std::invalid_argument: what is wrong and what is expected.
[[nodiscard]] Network parse_network(const NetworkLevel& node, std::span<const std::string> beyond);

/// "450 GB/s within 8 devices, 50 within 256, 25 beyond"
[[nodiscard]] std::string to_string(const Network& network);

/// "node"; "to 256" devices; "beyond 256", or "network" where there is nothing else.
[[nodiscard]] std::string level_name(const Network& network, std::size_t level);

/// A group of which every `apart` devices hold one member.
struct Scattered {
  std::int64_t members = 1, apart = 1;
};

/// Into how many domains of each level a group falls; the last is 1. A member that has begun in a node stays in it, and
/// the domains that are needed are filled alike: of 64 members in domains of 9, 8 each.
[[nodiscard]] std::vector<std::int64_t> domains_of(const Scattered& group, const Network& network);

[[nodiscard]] InNodes in_nodes(const Scattered& group, const Network& network);

/// Of so many bytes that each member reduces and gathers, their seconds on each level: first in nodes, then what is
/// left for each between them, and so on (a ring takes the same of each level). Where domains are not filled alike, the
/// one with the fewest members has the longest way.
[[nodiscard]] std::vector<double> seconds_by_level(double bytes, const Scattered& group, const Network& network);

}  // namespace gpubench
