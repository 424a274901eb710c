#include "harness/simulate/cluster.h"

#include <algorithm>

#include "harness/network/collective_time.h"
#include "reference/ops/collective.h"
#include "reference/ops/token_exchange.h"

namespace gpubench {
namespace {

InNodes spread_of(const Cluster& cluster, const RankGroup& members) {
  std::map<int, int> by_node;
  for (const int rank : members.members()) ++by_node[rank / cluster.ranks_per_node];
  InNodes spread{static_cast<double>(members.size()), static_cast<double>(by_node.size()), 1.0};
  for (const auto& [node, ranks] : by_node) spread.in_node = std::max(spread.in_node, static_cast<double>(ranks));
  return spread;
}

/// Of a collective in which each byte of the message leaves its node `times`.
double wire_s(const Cluster& cluster, const InNodes& at, const Cost& cost, double times) {
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
  const InNodes at = spread_of(cluster, members);
  if (at.ranks < 2.0) return cluster.launch_s;
  const bool both_ways = kind == all_reduce_kind;  // reduce, then gather
  const double wire = kind == send_recv_kind ? cost.message_bytes / (at.nodes > 1.0 ? cluster.cluster_bytes_per_s
                                                                                    : cluster.node_bytes_per_s)
                                             : wire_s(cluster, at, cost, both_ways ? 2.0 : 1.0);
  const bool direct = kind == send_recv_kind || kind == all_to_all_kind || exchanges_tokens(kind);
  return fastest_way_s(both_ways ? Passes::there_back : direct ? Passes::direct : Passes::once, at, wire);
}

}  // namespace gpubench
