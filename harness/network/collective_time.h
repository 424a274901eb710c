// How long a collective takes beside its bytes: the best of the ways that NCCL has, with its own figures
// (src/graph/tuning.cc there).
//
// A way is a ring or a tree by a protocol that trades bandwidth for latency. It takes its base, the latency of its
// steps, and the message's bytes at the share of the links that the protocol reaches:
//   ring  2 (n - 1) steps of all_reduce, n - 1 of the others; of these 2 (k - 1) or k - 1 go to another node
//   tree  2 (g - 1) steps within nodes of g ranks, 2 log2(k) between k nodes; all_reduce alone
#pragma once

namespace gpubench {

/// How a group lies in nodes. A node is what NVLink joins.
struct InNodes {
  double ranks = 1.0, nodes = 1.0, in_node = 1.0;  ///< the last: of the fullest node
};

enum class Passes {
  once,        ///< around the ring: all_gather, reduce_scatter, broadcast
  there_back,  ///< all_reduce: reduced, then gathered
  direct,      ///< sends side by side: one step
};

struct Way {
  double latency_s = 0.0;
  double bandwidth = 1.0;  ///< the share of the links' that it reaches
  /// `bytes_s`: what the bytes would take on links that they fill.
  [[nodiscard]] double seconds(double bytes_s) const { return latency_s + bytes_s / bandwidth; }
};

/// Of two ranks or more.
[[nodiscard]] Way fastest_way(Passes passes, const InNodes& at, double bytes_s);

}  // namespace gpubench
