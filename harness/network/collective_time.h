// Time of a collective: the fastest algorithm and protocol of NCCL, by its tuning model (NCCL src/graph/tuning.cc).
//
// Time = base latency + latency of all steps + bytes at the protocol's fraction of the link bandwidth. Steps:
//   ring  n ranks, k nodes: 2 (n - 1) for all_reduce, else n - 1; of these 2 (k - 1) or k - 1 between nodes
//   tree  all_reduce only: 2 (g - 1) within nodes of g ranks, 2 log2(k) between k nodes
#pragma once

namespace gpubench {

/// Ranks of a group, nodes it spans, and ranks in the fullest node. A node is an NVLink domain.
struct InNodes {
  double ranks = 1.0, nodes = 1.0, in_node = 1.0;
};

enum class Passes {
  once,        ///< once around the ring: all_gather, reduce_scatter, broadcast
  there_back,  ///< all_reduce: reduce, then gather
  direct,      ///< simultaneous sends: one step
};

struct Way {
  double latency_s = 0.0;
  double bandwidth = 1.0;  ///< fraction of the link bandwidth
  /// `bytes_s`: seconds of the bytes at full link bandwidth.
  [[nodiscard]] double seconds(double bytes_s) const { return latency_s + bytes_s / bandwidth; }
};

/// Requires at least two ranks.
[[nodiscard]] Way fastest_way(Passes passes, const InNodes& at, double bytes_s);

}  // namespace gpubench
