#include "harness/simulate/cluster.h"

#include <algorithm>
#include <set>
#include <utility>

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

double slowest_link(const Cluster& cluster, const RankGroup& members) {
  if (cluster.slow_links.empty()) return 1.0;
  double slowest = 0.0;
  for (const int rank : members.members()) {
    const auto slow = cluster.slow_links.find(rank);
    slowest = std::max(slowest, slow == cluster.slow_links.end() ? 1.0 : slow->second);
  }
  return slowest;
}

struct Wire {
  double near_s = 0.0, far_s = 0.0;
  [[nodiscard]] double seconds() const { return std::max(near_s, far_s); }
};

/// Whether each rank sends separate messages to the others through its own link.
bool sends_distinct_messages(OpKind kind) { return kind == all_to_all_kind || exchanges_tokens(kind); }

Wire wire_of(const Cluster& cluster, const InNodes& at, OpKind kind, const Cost& cost) {
  if (kind == send_recv_kind) {
    if (at.nodes > 1.0) return {0.0, cost.message_bytes / cluster.cluster_bytes_per_s};
    return {cost.message_bytes / cluster.node_bytes_per_s, 0.0};
  }
  const double near_s = cost.bytes / cluster.node_bytes_per_s;
  if (at.nodes < 2.0) return {near_s, 0.0};
  const double times = kind == all_reduce_kind ? 2.0 : 1.0;  // each byte leaves its node
  const double part = kind == broadcast_kind ? 1.0 : times * (at.nodes - 1.0) / at.nodes;
  const double links = sends_distinct_messages(kind) ? 1.0 : at.in_node;
  return {near_s, part * cost.message_bytes / (cluster.cluster_bytes_per_s * links)};
}

/// The uplinks that a collective uses, and the maximum of ranks that send over one of them.
struct Uplinks {
  std::vector<int> used;
  double ranks = 0.0;
};

// Rings, trees and direct sends use both directions equally. send_recv: only pairs in different nodes count. broadcast:
// goes from node to node, neither into the first nor out of the last.
Uplinks uplinks_of(const Cluster& cluster, const InNodes& at, const OpCall& call) {
  Uplinks uplinks;
  if (at.nodes < 2.0) return uplinks;
  const auto node_of = [&](int member) { return call.group[member] / cluster.ranks_per_node; };
  const int size = call.group.size();
  std::map<int, int> leaving;
  if (call.kind == send_recv_kind) {
    const auto& own = call.attributes.as<SendRecv>();
    const SendRecv sends{size, own.shift, own.round};
    for (int member = 0; member < size; ++member) {
      if (node_of(member) != node_of(sends.receiver(member))) ++leaving[node_of(member)];
    }
  } else {
    for (int member = 0; member < size; ++member) leaving[node_of(member)] = static_cast<int>(at.in_node);
  }
  int first = -1, last = -1;
  if (call.kind == broadcast_kind) {
    std::set<int> reached;
    const int root = call.attributes.as<Broadcast>().root;
    first = node_of(root);
    for (int i = 0; i < size; ++i) {
      const int node = node_of((root + i) % size);
      if (reached.insert(node).second) last = node;
    }
  }
  for (const auto& [node, ranks] : leaving) {
    if (node != last) uplinks.used.push_back(2 * node);
    if (node != first) uplinks.used.push_back(2 * node + 1);
    uplinks.ranks = std::max(uplinks.ranks, static_cast<double>(ranks));
  }
  return uplinks;
}

}  // namespace

double compute_s(const Cluster& cluster, const Cost& cost) {
  return std::max({cost.flop / cluster.flop_per_s, cost.bytes / cluster.bytes_per_s, cluster.launch_s});
}

CollectiveTime collective_time(const Cluster& cluster, const OpCall& call, const Cost& cost) {
  const InNodes at = spread_of(cluster, call.group);
  if (at.ranks < 2.0) return {cluster.launch_s};
  const Wire wire = wire_of(cluster, at, call.kind, cost);
  const bool direct = call.kind == send_recv_kind || sends_distinct_messages(call.kind);
  const Passes passes = call.kind == all_reduce_kind ? Passes::there_back : direct ? Passes::direct : Passes::once;
  const Way way = fastest_way(passes, at, wire.seconds());
  CollectiveTime time{way.latency_s, wire.seconds() / way.bandwidth * slowest_link(cluster, call.group)};
  Uplinks uplinks = uplinks_of(cluster, at, call);
  const double uplink_s =
      wire.far_s / way.bandwidth * (uplinks.ranks * cluster.oversubscription / cluster.ranks_per_node);
  if (!(uplink_s > 0.0)) return time;
  time.wire_s = std::max(time.wire_s, uplink_s);
  time.share = uplink_s / time.wire_s;
  time.uplinks = std::move(uplinks.used);
  return time;
}

}  // namespace gpubench
