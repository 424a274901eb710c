#include "harness/parity/summation_tree.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace gpubench {
namespace {

using Node = SummationTree::Node;

class Forest {
 public:
  Forest(int terms, std::vector<Node>& nodes) : parent_(static_cast<std::size_t>(terms)), nodes_(nodes) {
    std::iota(parent_.begin(), parent_.end(), 0);
    for (int leaf = 0; leaf < terms; ++leaf) nodes_.push_back({{}, leaf, leaf, 1});
    node_ = parent_;
  }
  int set_of(int term) {
    int root = term;
    while (parent(root) != root) root = parent(root);
    while (parent(term) != root) term = std::exchange(parent(term), root);
    return root;
  }
  int& node_of(int set) { return node_[static_cast<std::size_t>(set)]; }
  void join(int set, int other) { parent(other) = set; }

 private:
  int& parent(int term) { return parent_[static_cast<std::size_t>(term)]; }
  std::vector<int> parent_, node_;
  std::vector<Node>& nodes_;
};

}  // namespace

std::optional<SummationTree> SummationTree::of_sizes(std::span<const int> sizes, int terms) {
  const auto count = static_cast<std::size_t>(terms);
  std::vector<std::vector<std::pair<int, int>>> pairs(count + 1);  // by size
  for (int i = 0; i < terms; ++i) {
    for (int j = i + 1; j < terms; ++j) {
      const int size = sizes[static_cast<std::size_t>(i) * count + static_cast<std::size_t>(j)];
      if (size < 2 || size > terms || size != sizes[static_cast<std::size_t>(j) * count + static_cast<std::size_t>(i)])
        return std::nullopt;
      pairs[static_cast<std::size_t>(size)].emplace_back(i, j);
    }
  }
  SummationTree tree;
  Forest forest(terms, tree.nodes_);
  // A smaller subtree is complete earlier: pairs of one size join into nodes.
  for (int size = 2; size <= terms; ++size) {
    const auto& of_size = pairs[static_cast<std::size_t>(size)];
    std::vector<std::vector<int>> children_of(count);  // by set: the joined nodes
    std::vector<std::int64_t> pairs_of(count);
    for (const auto& [i, j] : of_size) {
      const int set = forest.set_of(i), other = forest.set_of(j);
      const auto at = static_cast<std::size_t>(set), from = static_cast<std::size_t>(other);
      ++pairs_of[at];
      if (set == other) {
        if (children_of[at].empty()) return std::nullopt;  // both already share a smaller subtree
        continue;
      }
      for (const std::size_t one : {at, from}) {
        if (children_of[one].empty()) children_of[one].push_back(forest.node_of(static_cast<int>(one)));
      }
      children_of[at].insert(children_of[at].end(), children_of[from].begin(), children_of[from].end());
      children_of[from].clear();
      pairs_of[at] += std::exchange(pairs_of[from], 0);
      forest.join(set, other);
    }
    for (std::size_t set = 0; set < count; ++set) {
      std::vector<int>& children = children_of[set];
      if (children.empty()) continue;
      std::sort(children.begin(), children.end(),
                [&](int a, int b) { return tree.node(a).first < tree.node(b).first; });
      Node node{children, -1, tree.node(children.front()).first, 0};
      std::int64_t across = 0;  // pairs of terms in different children
      for (const int one : children) {
        across += static_cast<std::int64_t>(node.leaves) * tree.node(one).leaves;
        node.leaves += tree.node(one).leaves;
      }
      if (node.leaves != size || across != pairs_of[set]) return std::nullopt;
      forest.node_of(static_cast<int>(set)) = static_cast<int>(tree.nodes_.size());
      tree.nodes_.push_back(std::move(node));
    }
  }
  tree.root_ = static_cast<int>(tree.nodes_.size()) - 1;
  return tree.root().leaves == terms ? std::optional(std::move(tree)) : std::nullopt;
}

int SummationTree::max_at_once() const {
  std::size_t most = 1;
  for (const Node& node : nodes_) {
    if (node.children.size() < 3) continue;
    const bool adds_to_a_sum = std::any_of(node.children.begin(), node.children.end(),
                                           [this](int one) { return !this->node(one).children.empty(); });
    most = std::max(most, node.children.size() - (adds_to_a_sum ? 1 : 0));
  }
  return static_cast<int>(most);
}

}  // namespace gpubench
