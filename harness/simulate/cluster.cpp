#include "harness/simulate/cluster.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reference/ops/collective.h"
#include "reference/ops/token_exchange.h"

namespace gpubench {
namespace {

// NCCL's figures, in microseconds: what a collective takes in any case, and each of its steps; and the share of a
// link's bandwidth that its bytes reach.
struct Protocol {
  double ring_base, tree_base;
  double ring_in_node, ring_between, tree_in_node, tree_between;
  double bandwidth;
};
constexpr std::array protocols{Protocol{6.6, 6.8, 0.6, 2.7, 0.6, 5.0, 0.5},      // LL
                               Protocol{14.0, 14.0, 1.9, 4.0, 1.25, 8.5, 0.92},  // LL128
                               Protocol{8.4, 8.4, 3.4, 14.0, 4.0, 14.0, 1.0}};   // simple
constexpr double of_tree = 0.92;                                                 // of a ring's bandwidth
constexpr double micro = 1e-6;

/// How a group lies in nodes.
struct Spread {
  double ranks = 1.0, nodes = 1.0, in_node = 1.0;  ///< the last: of the fullest node
};

Spread spread_of(const Cluster& cluster, const RankGroup& members) {
  std::map<int, int> by_node;
  for (const int rank : members.members()) ++by_node[rank / cluster.ranks_per_node];
  Spread spread{static_cast<double>(members.size()), static_cast<double>(by_node.size()), 1.0};
  for (const auto& [node, ranks] : by_node) spread.in_node = std::max(spread.in_node, static_cast<double>(ranks));
  return spread;
}

/// Of a collective in which each byte of the message leaves its node `times`.
double wire_s(const Cluster& cluster, const Spread& at, const Cost& cost, double times) {
  const double near = cost.bytes / cluster.node_bytes_per_s;
  const double far =
      times * cost.message_bytes * (at.nodes - 1.0) / at.nodes / (cluster.cluster_bytes_per_s * at.in_node);
  return at.nodes > 1.0 ? std::max(near, far) : near;
}

}  // namespace

double compute_s(const Cluster& cluster, const Cost& cost) {
  return std::max({cost.flop / cluster.flop_per_s, cost.bytes / cluster.bytes_per_s, cluster.launch_s});
}

double collective_s(const Cluster& cluster, OpKind kind, const Cost& cost, const RankGroup& members) {
  const Spread at = spread_of(cluster, members);
  if (at.ranks < 2.0) return cluster.launch_s;
  const bool both_ways = kind == all_reduce_kind;  // reduce, then gather
  const double times = both_ways ? 2.0 : 1.0;
  const double between = times * (at.nodes - 1.0), steps = times * (at.ranks - 1.0);
  const double wire = kind == send_recv_kind ? cost.message_bytes / (at.nodes > 1.0 ? cluster.cluster_bytes_per_s
                                                                                    : cluster.node_bytes_per_s)
                                             : wire_s(cluster, at, cost, times);
  double best = HUGE_VAL;
  for (const Protocol& way : protocols) {
    // Direct sends go side by side: one step of a ring.
    const bool direct = kind == send_recv_kind || kind == all_to_all_kind || exchanges_tokens(kind);
    const double latency = direct ? (at.nodes > 1.0 ? way.ring_between : way.ring_in_node)
                                  : (steps - between) * way.ring_in_node + between * way.ring_between;
    best = std::min(best, micro * (way.ring_base + latency) + wire / way.bandwidth);
    if (!both_ways) continue;
    const double climbs = 2.0 * (at.in_node - 1.0) * way.tree_in_node + 2.0 * std::log2(at.nodes) * way.tree_between;
    best = std::min(best, micro * (way.tree_base + climbs) + wire / (way.bandwidth * of_tree));
  }
  return best;
}

}  // namespace gpubench
