// Sums replayed in f32 in the order of a tree, for bitwise comparison with a library's results.
#pragma once

#include <cmath>
#include <span>

#include "harness/parity/summation_tree.h"

namespace gpubench::testing {

/// The sum of a[k] b[k], f32 or narrower numbers. `fused`: a product that is added alone is rounded with the sum.
class ReplayedSum {
 public:
  ReplayedSum(const SummationTree& tree, std::span<const float> a, std::span<const float> b, bool fused)
      : tree_(tree), a_(a), b_(b), fused_(fused) {}

  [[nodiscard]] float value() const { return of(tree_.root()); }

 private:
  [[nodiscard]] float product(int leaf) const {
    return a_[static_cast<std::size_t>(leaf)] * b_[static_cast<std::size_t>(leaf)];
  }
  [[nodiscard]] float plus(float sum, int leaf) const {
    return fused_ ? std::fma(a_[static_cast<std::size_t>(leaf)], b_[static_cast<std::size_t>(leaf)], sum)
                  : sum + product(leaf);
  }
  [[nodiscard]] float of(const SummationTree::Node& node) const {
    if (node.children.empty()) return product(node.leaf);
    float sum = 0.0F;
    bool any = false;
    for (const int one : node.children) {
      const SummationTree::Node& below = tree_.node(one);
      if (below.children.empty()) continue;
      sum = any ? sum + of(below) : of(below);
      any = true;
    }
    for (const int one : node.children) {
      const SummationTree::Node& below = tree_.node(one);
      if (!below.children.empty()) continue;
      sum = any ? plus(sum, below.leaf) : product(below.leaf);
      any = true;
    }
    return sum;
  }

  const SummationTree& tree_;
  std::span<const float> a_, b_;
  bool fused_;
};

}  // namespace gpubench::testing
