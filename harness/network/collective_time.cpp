#include "harness/network/collective_time.h"

#include <array>
#include <cmath>

namespace gpubench {
namespace {

// NCCL's constants: base latency and latency per step in microseconds; fraction of link bandwidth.
struct Protocol {
  double ring_base, tree_base;
  double ring_in_node, ring_between, tree_in_node, tree_between;
  double bandwidth;
};
constexpr std::array protocols{Protocol{6.6, 6.8, 0.6, 2.7, 0.6, 5.0, 0.5},      // LL
                               Protocol{14.0, 14.0, 1.9, 4.0, 1.25, 8.5, 0.92},  // LL128
                               Protocol{8.4, 8.4, 3.4, 14.0, 4.0, 14.0, 1.0}};   // simple
constexpr double of_tree = 0.92;                                                 // fraction of a ring's bandwidth
constexpr double micro = 1e-6;

}  // namespace

Way fastest_way(Passes passes, const InNodes& at, double bytes_s) {
  const double times = passes == Passes::there_back ? 2.0 : 1.0;
  const double between = times * (at.nodes - 1.0), steps = times * (at.ranks - 1.0);
  Way best{HUGE_VAL};
  const auto consider = [&](const Way& way) {
    if (way.seconds(bytes_s) < best.seconds(bytes_s)) best = way;
  };
  for (const Protocol& way : protocols) {
    const double latency = passes == Passes::direct ? (at.nodes > 1.0 ? way.ring_between : way.ring_in_node)
                                                    : (steps - between) * way.ring_in_node + between * way.ring_between;
    consider({micro * (way.ring_base + latency), way.bandwidth});
    if (passes != Passes::there_back) continue;
    const double climbs = 2.0 * (at.in_node - 1.0) * way.tree_in_node + 2.0 * std::log2(at.nodes) * way.tree_between;
    consider({micro * (way.tree_base + climbs), way.bandwidth * of_tree});
  }
  return best;
}

}  // namespace gpubench
