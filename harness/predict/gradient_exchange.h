// The time that reducing a step's gradients and gathering its weights takes on a network.
#pragma once

#include <string>
#include <vector>

#include "harness/network/levels.h"

namespace gpubench {

/// Seconds of a step.
struct GradientExchange {
  double seconds = 0.0;
  double latency_s = 0.0;          ///< of these, what links that are full from the first byte would save
  std::vector<double> by_level{};  ///< the others, by the network's levels
  GradientExchange& operator+=(const GradientExchange& more);
};

/// How the devices with the same weights agree on them. A sharded optimizer has gradients scattered and weights
/// gathered, for which NCCL has rings alone; a replicated one has gradients all-reduced, by ring or tree.
enum class Optimizer { sharded, replicated };

/// Of the parameters of a device, which the members of a group share, sent in buckets.
[[nodiscard]] GradientExchange exchange_of(double parameters, const Scattered& group, Optimizer optimizer,
                                           const Network& network);

/// Where most of the time goes: a level's name, or "latency"; "none" where nothing is sent.
[[nodiscard]] std::string slowest_of(const GradientExchange& wire, const Network& network);

}  // namespace gpubench
