#include "harness/parity/summation_tree.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "harness/core/hash.h"
#include "tests/harness/parity/replayed_sum.h"
#include "tests/reference/ops/summation_orders.h"

namespace gpubench::testing {
namespace summation_tree_test {

using Sum = std::function<float(const Factors&)>;

// The terms lost next to two huge ones: those of the smallest subtree with both.
std::vector<int> sizes_of(const Sum& sum, int terms) {
  const auto count = static_cast<std::size_t>(terms);
  std::vector<int> sizes(count * count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = 0; j < count; ++j) {
      if (i == j) continue;
      std::vector<double> a(count, 1.0), b(count, 1.0);
      a[i] = 0x1p60;
      b[j] = -0x1p60;
      sizes[i * count + j] = terms - static_cast<int>(sum({a, b}));
    }
  }
  return sizes;
}

std::vector<std::int64_t> places(int terms, std::int64_t apart = 1) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(terms));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i) * apart;
  return all;
}

std::string words_of(const Sum& sum, int terms) {
  const std::optional<SummationTree> tree = SummationTree::of_sizes(sizes_of(sum, terms), terms);
  return tree ? tree->text(places(terms)) : "no tree";
}

TEST(SummationTree, KnownOrdersAreDescribed) {
  EXPECT_EQ(words_of(in_order, 1), "alone");
  EXPECT_EQ(words_of(in_order, 2), "in order");
  EXPECT_EQ(words_of(in_order, 100), "in order");
  EXPECT_EQ(words_of(pairwise, 64), "in pairs, halves of halves");
  EXPECT_EQ(words_of([](const Factors& t) { return interleaved(t, 8); }, 64),
            "8 interleaved lanes, each in order, added in pairs");
  EXPECT_EQ(words_of([](const Factors& t) { return interleaved(t, 16); }, 128),
            "16 interleaved lanes, each in order, added in pairs");
  EXPECT_EQ(words_of([](const Factors& t) { return blocked(t, 16); }, 64),
            "4 blocks of 16, each in order, added in order");
  EXPECT_EQ(words_of([](const Factors& t) { return blocked(t, 16); }, 70),
            "4 blocks of 16, each in order, added in order; and the last 6 in order");
  EXPECT_EQ(words_of([](const Factors& t) { return blocked(t, 48); }, 64),
            "the first 48 in order; and the last 16 in order");
  EXPECT_EQ(words_of([](const Factors& t) { return in_parts(t, 2); }, 64),
            "2 blocks of 32, each in order, added at the end");
  EXPECT_EQ(words_of([](const Factors& t) { return blocked(t, 32, 8); }, 128),
            "4 blocks of 32, each 8 interleaved lanes, each in order, added in pairs, added in order");
}

TEST(SummationTree, OddOrdersAreDescribed) {
  const auto reversed = [](const Factors& t) {
    float sum = 0.0F;
    for (std::size_t k = t.size(); k-- > 0;) sum = fused(sum, t.a[k], t.b[k]);
    return sum;
  };
  EXPECT_EQ(words_of(reversed, 20), "in reverse order");
  const auto pairs_turned = [](const Factors& t) {
    float sum = 0.0F;
    for (std::size_t k = 0; k < t.size(); k += 2) {
      if (k + 1 < t.size()) sum = fused(sum, t.a[k + 1], t.b[k + 1]);
      sum = fused(sum, t.a[k], t.b[k]);
    }
    return sum;
  };
  EXPECT_EQ(words_of(pairs_turned, 20), "in order of pairs, the later one first");
  const auto crooked = [](const Factors& t) {  // ((1 3) (0 2))
    return fused(fused(0, t.a[1], t.b[1]), t.a[3], t.b[3]) + fused(fused(0, t.a[0], t.b[0]), t.a[2], t.b[2]);
  };
  EXPECT_EQ(words_of(crooked, 4), "in pairs, every other one of every other one");
  const auto more_crooked = [](const Factors& t) {  // ((0 1) 4) + (2 3)
    return fused(fused(fused(0, t.a[0], t.b[0]), t.a[1], t.b[1]), t.a[4], t.b[4]) +
           fused(fused(0, t.a[2], t.b[2]), t.a[3], t.b[3]);
  };
  EXPECT_EQ(words_of(more_crooked, 5), "0 1 4 (2 3)");
}

// Random trees, with up to five children a node.
class RandomTree {
 public:
  RandomTree(int terms, std::uint64_t seed) : seed_(seed), terms_(terms) {
    std::vector<int> all(static_cast<std::size_t>(terms));
    std::iota(all.begin(), all.end(), 0);
    for (std::size_t i = all.size(); i-- > 1;) std::swap(all[i], all[random() % (i + 1)]);
    sizes_.resize(all.size() * all.size());
    text_ = grow(all);
  }
  [[nodiscard]] const std::vector<int>& sizes() const { return sizes_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::uint64_t random() { return seed_ = mix(seed_); }
  // Children by their lowest term, in parentheses.
  std::string grow(const std::vector<int>& terms) {
    if (terms.size() == 1) return std::to_string(terms.front());
    const std::size_t most = std::min<std::size_t>(terms.size(), 5);
    const std::size_t count = 2 + random() % (most - 1);
    std::vector<std::vector<int>> parts(count);
    for (std::size_t i = 0; i < terms.size(); ++i) parts[i < count ? i : random() % count].push_back(terms[i]);
    std::vector<std::pair<int, std::string>> children;
    for (std::size_t p = 0; p < count; ++p) {
      for (std::size_t q = 0; q < count; ++q) {
        for (const int a : parts[p]) {
          for (const int b : parts[q]) {
            if (p != q) sizes_[static_cast<std::size_t>(a * terms_ + b)] = static_cast<int>(terms.size());
          }
        }
      }
      children.emplace_back(*std::min_element(parts[p].begin(), parts[p].end()), grow(parts[p]));
    }
    std::sort(children.begin(), children.end());
    std::string text = "(";
    for (const auto& [first, child] : children) text += (text.size() > 1 ? " " : "") + child;
    return text + ")";
  }

  std::uint64_t seed_;
  int terms_;
  std::vector<int> sizes_;
  std::string text_;
};

std::string in_parentheses(const SummationTree& tree, const SummationTree::Node& node) {
  if (node.children.empty()) return std::to_string(node.leaf);
  std::string text = "(";
  for (const int child : node.children) text += (text.size() > 1 ? " " : "") + in_parentheses(tree, tree.node(child));
  return text + ")";
}

TEST(SummationTree, EveryTreeIsFoundAgainFromTheSizesOfItsSubtrees) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const int terms = 2 + static_cast<int>(mix(seed) % 60);
    const RandomTree random(terms, mix(seed + 1000));
    const std::optional<SummationTree> tree = SummationTree::of_sizes(random.sizes(), terms);
    ASSERT_TRUE(tree) << random.text();
    EXPECT_EQ(in_parentheses(*tree, tree->root()), random.text());
    EXPECT_EQ(tree->terms(), terms);
  }
}

// One wrong entry, and entries of two orders, as where outputs are summed in different orders.
TEST(SummationTree, SizesOfNoTreeHaveNone) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const int terms = 4 + static_cast<int>(mix(seed) % 30);
    std::vector<int> sizes = RandomTree(terms, mix(seed + 2000)).sizes();
    const auto at = static_cast<std::size_t>(mix(seed + 3000) % (sizes.size()));
    if (at / static_cast<std::size_t>(terms) == at % static_cast<std::size_t>(terms)) continue;
    sizes[at] = sizes[at] == terms ? 2 : terms;
    EXPECT_FALSE(SummationTree::of_sizes(sizes, terms)) << terms << " terms, entry " << at;
    ++refused;
  }
  EXPECT_GT(refused, 250);
  std::vector<int> mixed = sizes_of(in_order, 16);
  const std::vector<int> other = sizes_of(pairwise, 16);
  std::copy(other.begin() + 128, other.end(), mixed.begin() + 128);
  EXPECT_FALSE(SummationTree::of_sizes(mixed, 16));
  for (const int wrong : {0, 1, 17, -3}) {
    std::vector<int> sizes = sizes_of(in_order, 16);
    sizes[5] = wrong;
    EXPECT_FALSE(SummationTree::of_sizes(sizes, 16)) << wrong;
  }
}

TEST(SummationTree, ReplaysTheOrderBitForBit) {
  struct Row {
    const char* name;
    Sum sum;
    bool fused;
  };
  const std::vector<Row> rows{{"in order", in_order, true},
                              {"in order, products rounded", in_order_unfused, false},
                              {"16 lanes", [](const Factors& t) { return interleaved(t, 16); }, true},
                              {"blocks of 64", [](const Factors& t) { return blocked(t, 64); }, true},
                              {"pairwise", pairwise, false}};
  for (const Row& row : rows) {
    constexpr int terms = 192;
    const std::optional<SummationTree> tree = SummationTree::of_sizes(sizes_of(row.sum, terms), terms);
    ASSERT_TRUE(tree) << row.name;
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      std::vector<float> a, b;
      for (std::uint64_t k = 0; k < terms; ++k) {
        a.push_back(static_cast<float>(static_cast<double>(hash_at(seed, k) >> 11U) * 0x1p-52 - 1.0));
        b.push_back(static_cast<float>(static_cast<double>(hash_at(seed + 99, k) >> 11U) * 0x1p-52 - 1.0));
      }
      const std::vector<double> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
      EXPECT_EQ(ReplayedSum(*tree, a, b, row.fused).value(), row.sum({wide_a, wide_b})) << row.name;
    }
  }
}

// A block of products that is added at once has that many children and the old sum.
TEST(SummationTree, CountsWhatIsAddedAtOnce) {
  constexpr int terms = 64;
  const auto tree_of = [&](int block) {
    std::vector<int> sizes(terms * terms);
    for (int i = 0; i < terms; ++i) {
      for (int j = 0; j < terms; ++j)
        sizes[static_cast<std::size_t>(i * terms + j)] = (std::max(i, j) / block + 1) * block;
    }
    return SummationTree::of_sizes(sizes, terms).value();
  };
  EXPECT_EQ(tree_of(4).max_at_once(), 4);
  EXPECT_EQ(tree_of(4).text(places(terms)), "4 at once, in order");
  EXPECT_EQ(tree_of(16).max_at_once(), 16);
  EXPECT_EQ(tree_of(16).text(places(terms, 2)), "32 at once, in order") << "every other k was looked at";
  EXPECT_EQ(tree_of(64).text(places(terms)), "all at once");
  EXPECT_EQ(SummationTree::of_sizes(sizes_of(in_order, 9), 9)->max_at_once(), 1);
}

}  // namespace summation_tree_test
}  // namespace gpubench::testing
