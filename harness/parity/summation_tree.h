// The order of a sum as a tree, read from how much of a sum is lost next to two huge terms that cancel: FPRev (Xie et
// al., "Revealing floating-point accumulation orders in software/hardware implementations", arXiv 2411.00442).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpubench {

/// Leaves are terms, by their place in a list; a node with more than two children adds all of them at once.
class SummationTree {
 public:
  struct Node {
    std::vector<int> children;  ///< nodes, ordered by their first leaf; empty for a leaf
    int leaf = -1;              ///< the term
    int first = 0;              ///< the lowest term below it
    int leaves = 1;
  };

  /// The tree in which the smallest subtree with terms i and j has sizes[i * terms + j] terms, for all i != j. None
  /// where no tree has these sizes: terms of different outputs or launches were added in different orders. `terms` is
  /// at least 1.
  [[nodiscard]] static std::optional<SummationTree> of_sizes(std::span<const int> sizes, int terms);

  [[nodiscard]] const Node& node(int index) const { return nodes_.at(static_cast<std::size_t>(index)); }
  [[nodiscard]] const Node& root() const { return node(root_); }
  [[nodiscard]] int terms() const { return root().leaves; }
  /// The most terms that one node adds at once, without a sum of earlier ones; 1 where every node has two children.
  [[nodiscard]] int max_at_once() const;

  /// "in order", "8 at once, in order", "16 interleaved lanes, each in order, added in pairs", "blocks of 64, each in
  /// order, added in order", else the tree in brackets, cut to about 100 characters. `places`: of the terms along k,
  /// ascending.
  [[nodiscard]] std::string text(std::span<const std::int64_t> places) const;

 private:
  std::vector<Node> nodes_;
  int root_ = 0;
};

}  // namespace gpubench
