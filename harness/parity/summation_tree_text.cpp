// SummationTree::text(): a tree in words. Parts of equal form are described once.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "harness/core/hash.h"
#include "harness/parity/summation_tree.h"

namespace gpubench {
namespace {

using Node = SummationTree::Node;

constexpr std::size_t max_text = 100;

std::string shortened(std::string text) {
  if (text.size() <= max_text) return text;
  return text.substr(0, max_text) + " ...";
}

class Words {
 public:
  Words(const SummationTree& tree, std::span<const std::int64_t> places) : tree_(tree), places_(places) {}

  [[nodiscard]] std::string of(const Node& node) const {
    if (node.children.empty()) return "alone";
    for (const auto& form : {&Words::one_by_one, &Words::in_pairs, &Words::in_blocks}) {
      if (std::string text = (this->*form)(node); !text.empty()) return text;
    }
    return shortened(brackets(node, max_text));
  }

 private:
  [[nodiscard]] std::int64_t place(int leaf) const { return places_[static_cast<std::size_t>(leaf)]; }
  [[nodiscard]] const Node& child(const Node& node, std::size_t i) const { return tree_.node(node.children[i]); }

  void leaves(const Node& node, std::vector<std::int64_t>& all) const {
    if (node.children.empty()) all.push_back(place(node.leaf));
    for (const int one : node.children) leaves(tree_.node(one), all);
  }
  // The greatest common divisor of the distances between its leaves; 0 for a single leaf.
  [[nodiscard]] std::int64_t stride(const Node& node) const {
    std::vector<std::int64_t> all;
    leaves(node, all);
    std::int64_t stride = 0;
    for (const std::int64_t one : all) stride = std::gcd(stride, one - all.front());
    return stride;
  }
  // Equal for subtrees that differ only in their first place and in the distance of their leaves.
  [[nodiscard]] std::uint64_t form(const Node& node) const {
    const std::int64_t unit = std::max<std::int64_t>(1, stride(node));
    return form(node, unit);
  }
  [[nodiscard]] std::uint64_t form(const Node& node, std::int64_t unit) const {
    std::uint64_t all = mix(node.children.size());
    for (const int one : node.children) {
      const Node& below = tree_.node(one);
      all =
          hash_at(all ^ form(below, unit), static_cast<std::uint64_t>((place(below.first) - place(node.first)) / unit));
    }
    return all;
  }

  // If no node adds two sums: the terms that each step adds, from the first step on; else empty.
  [[nodiscard]] std::vector<std::vector<std::int64_t>> steps(const Node& node) const {
    std::vector<std::vector<std::int64_t>> steps;
    for (const Node* at = &node; at != nullptr;) {
      const Node* sum = nullptr;
      steps.emplace_back();
      for (const int one : at->children) {
        const Node& below = tree_.node(one);
        if (below.children.empty()) {
          steps.back().push_back(place(below.leaf));
        } else if (sum == nullptr) {
          sum = &below;
        } else {
          return {};
        }
      }
      at = sum;
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  static std::string order_of(const std::vector<std::int64_t>& sequence) {
    if (std::is_sorted(sequence.begin(), sequence.end())) return "in order";
    if (std::is_sorted(sequence.rbegin(), sequence.rend())) return "in reverse order";
    bool pairs = true;  // the later one of each pair first
    for (std::size_t i = 0; i + 1 < sequence.size(); i += 2) {
      pairs = pairs && sequence[i] > sequence[i + 1] && (i == 0 || sequence[i + 1] > sequence[i - 2]);
    }
    if (pairs) return "in order of pairs, the later one first";
    return shortened(fmt::format("in the order {}", fmt::join(sequence, " ")));
  }

  [[nodiscard]] std::string one_by_one(const Node& node) const {
    const std::vector<std::vector<std::int64_t>> all = steps(node);
    if (all.empty()) return {};
    std::vector<std::int64_t> sequence;
    std::size_t most = 1;
    for (std::size_t i = 0; i < all.size(); ++i) {
      sequence.insert(sequence.end(), all[i].begin(), all[i].end());
      if (i > 0 || all[i].size() > 2) most = std::max(most, all[i].size());
    }
    if (most == 1) {  // the two terms of the first step may be swapped
      std::vector<std::int64_t> turned = sequence;
      if (turned.size() > 1) std::swap(turned[0], turned[1]);
      const std::string text = order_of(sequence), other = order_of(turned);
      return text.starts_with("in the") && !other.starts_with("in the") ? other : text;
    }
    if (all.size() == 1) return "all at once";
    // Blocks of equal length along k; some terms may be missing.
    const std::int64_t span = all.front().back() - all.front().front() + 1;
    for (std::int64_t length = 2; length <= 4 * span; length *= 2) {
      bool fits = length >= span;
      for (std::size_t i = 0; i < all.size() && fits; ++i) {
        const std::int64_t block = all[i].front() / length;
        fits = all[i].back() / length == block && (i == 0 || block > all[i - 1].front() / length);
      }
      if (fits) return fmt::format("{} at once, in order", length);
    }
    std::string text;
    for (const std::vector<std::int64_t>& step : all)
      text += fmt::format("{}{{{}}}", text.empty() ? "" : " ", fmt::join(step, " "));
    return "at once, one behind the other: " + shortened(text);
  }

  // Parts of equal form: adjacent or interleaved.
  [[nodiscard]] std::string parts(std::span<const Node* const> all, std::string_view added) const {
    const Node& first = *all.front();
    if (first.children.empty()) return {};
    const std::int64_t inner = stride(first);
    bool blocks = true, lanes = true;
    std::vector<std::int64_t> begins;
    for (const Node* part : all) begins.push_back(place(part->first));
    std::sort(begins.begin(), begins.end());
    const std::int64_t apart = begins[1] - begins[0];
    for (std::size_t i = 1; i < begins.size(); ++i) {
      blocks = blocks && begins[i] - begins[i - 1] == first.leaves * inner;
      lanes = lanes && begins[i] - begins[i - 1] == apart;
    }
    lanes = lanes && apart * static_cast<std::int64_t>(all.size()) == inner;
    if (!blocks && !lanes) return {};
    const std::string what = blocks ? fmt::format("{} blocks of {}", all.size(), first.leaves)
                                    : fmt::format("{} interleaved lanes", all.size());
    return fmt::format("{}, each {}, added {}", what, of(first), added);
  }

  [[nodiscard]] std::string behind(const Node& node) const { return node.leaves < 3 ? std::string() : " " + of(node); }

  [[nodiscard]] std::string in_pairs(const Node& node) const {
    std::vector<const Node*> level{&node};
    while (true) {
      std::vector<const Node*> next;
      for (const Node* one : level) {
        if (one->children.size() != 2) break;
        next.push_back(&child(*one, 0));
        next.push_back(&child(*one, 1));
      }
      const bool complete = next.size() == 2 * level.size();
      if (!complete ||
          !std::all_of(next.begin(), next.end(), [&](const Node* one) { return form(*one) == form(*next[0]); }))
        break;
      level = std::move(next);
    }
    if (level.size() < 2) return {};
    if (level.front()->children.empty()) {
      const int apart = child(node, 1).first - node.first;
      if (apart == child(node, 0).leaves) return "in pairs, halves of halves";
      return apart == 1 ? "in pairs, every other one of every other one" : "";
    }
    return parts(level, level.size() == 2 ? "at the end" : "in pairs");
  }

  [[nodiscard]] std::string in_blocks(const Node& node) const {
    std::vector<const Node*> all;
    const Node* at = &node;
    while (at->children.size() == 2 && !child(*at, 1).children.empty()) {
      all.push_back(&child(*at, 1));
      at = &child(*at, 0);
      if (!all.empty() && form(*at) == form(*all.back())) break;
    }
    all.push_back(at);
    std::reverse(all.begin(), all.end());
    if (all.size() < 2) return {};
    const Node* last = nullptr;
    if (form(*all.back()) != form(*all.front())) {
      last = all.back();
      all.pop_back();
    }
    const bool alike =
        std::all_of(all.begin(), all.end(), [&](const Node* one) { return form(*one) == form(*all[0]); });
    if (!alike) return unequal_blocks(node);
    if (all.size() == 1) {
      const bool after = last->first == all[0]->first + all[0]->leaves;
      return after ? shortened(fmt::format("the first {} {}; and the last {}{}", all[0]->leaves, of(*all[0]),
                                           last->leaves, behind(*last)))
                   : "";
    }
    std::string text = parts(all, "in order");
    if (!text.empty() && last != nullptr) text += fmt::format("; and the last {}{}", last->leaves, behind(*last));
    return text;
  }

  // A chain of parts of different lengths, each in order, one after the other along k.
  [[nodiscard]] std::string unequal_blocks(const Node& node) const {
    std::vector<std::int64_t> begins;
    const Node* at = &node;
    int end = node.first + node.leaves;  // of the remaining terms
    const auto takes = [&](const Node& part) {
      begins.push_back(place(part.first));
      return one_by_one(part) == "in order" && part.first + part.leaves == std::exchange(end, part.first);
    };
    while (at->children.size() == 2 && !child(*at, 1).children.empty()) {
      if (!takes(child(*at, 1))) return {};
      at = &child(*at, 0);
    }
    if (!takes(*at)) return {};
    std::reverse(begins.begin(), begins.end());
    return shortened(fmt::format("{} blocks, each in order, added in order; they begin at {}", begins.size(),
                                 fmt::join(begins, " ")));
  }

  // "0 1 (2 3) {4 5 6}": the terms added to the sum so far, in order; separate parts in parentheses; terms added at
  // once in braces. At least `wanted` characters of it.
  [[nodiscard]] std::string brackets(const Node& node, std::size_t wanted) const {
    std::vector<const Node*> steps;
    const Node* at = &node;
    for (; at->children.size() == 2; at = &child(*at, 0)) steps.push_back(&child(*at, 1));
    std::string text = at->children.empty() ? std::to_string(place(at->leaf)) : "{";
    for (const int one : at->children) text += in_brackets(tree_.node(one), wanted) + " ";
    if (!at->children.empty()) text.back() = '}';
    for (auto step = steps.rbegin(); step != steps.rend() && text.size() <= wanted; ++step)
      text += " " + in_brackets(**step, wanted - text.size());
    return text;
  }
  [[nodiscard]] std::string in_brackets(const Node& node, std::size_t wanted) const {
    return node.children.size() == 2 ? "(" + brackets(node, wanted) + ")" : brackets(node, wanted);
  }

  const SummationTree& tree_;
  std::span<const std::int64_t> places_;
};

}  // namespace

std::string SummationTree::text(std::span<const std::int64_t> places) const { return Words(*this, places).of(root()); }

}  // namespace gpubench
