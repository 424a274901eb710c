#include "suites/variants/variants.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

namespace gpubench::variants {
namespace {

class Cover {
 public:
  Cover(std::span<const std::size_t> sizes, const std::function<bool(const Row&)>& accepts)
      : sizes_(sizes), accepts_(accepts) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      for (std::size_t j = i + 1; j < sizes.size(); ++j) {
        for (std::size_t a = 0; a < sizes[i]; ++a) {
          for (std::size_t b = 0; b < sizes[j]; ++b) missing_.insert({i, a, j, b});
        }
      }
    }
  }

  Covering run() {
    const Row usual(sizes_.size(), 0);
    if (accepted(usual)) take(usual);
    for (std::size_t value = 1; sizes_.size() == 1 && value < sizes_[0]; ++value) {  // in no pair
      if (accepted({value})) take({value});
    }
    while (!missing_.empty()) {
      const FactorPair pair = *missing_.begin();
      if (const std::optional<Row> row = row_with(pair)) {
        take(*row);
      } else {
        covering_.refused.push_back(pair);
        missing_.erase(missing_.begin());
      }
    }
    return std::move(covering_);
  }

 private:
  bool accepted(const Row& row) {
    const auto [known, is_new] = known_.try_emplace(row, false);
    if (is_new) known->second = accepts_(row);
    return known->second;
  }

  void take(const Row& row) {
    covering_.rows.push_back(row);
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = i + 1; j < row.size(); ++j) {
        missing_.erase({i, row[i], j, row[j]});
        std::erase(covering_.refused, FactorPair{i, row[i], j, row[j]});
      }
    }
  }

  [[nodiscard]] std::size_t gain(const Row& row, std::size_t factor) const {
    std::size_t count = 0;
    for (std::size_t other = 0; other < row.size(); ++other) {
      if (other == factor) continue;
      count += other < factor ? missing_.count({other, row[other], factor, row[factor]})
                              : missing_.count({factor, row[factor], other, row[other]});
    }
    return count;
  }

  // Gives up to `helpers` factors from `first` on, other than the pair's, another value than 0, until the row is
  // accepted.
  bool make_accepted(Row& row, const FactorPair& pair, std::size_t first, int helpers) {
    if (accepted(row)) return true;
    if (helpers == 0) return false;
    for (std::size_t factor = first; factor < row.size(); ++factor) {
      if (factor == pair.first || factor == pair.second) continue;
      for (row[factor] = 1; row[factor] < sizes_[factor]; ++row[factor]) {
        if (make_accepted(row, pair, factor + 1, helpers - 1)) return true;
      }
      row[factor] = 0;
    }
    return false;
  }

  // An accepted row with the pair, whose other factors then take the accepted values that cover most missing pairs.
  std::optional<Row> row_with(const FactorPair& pair) {
    constexpr int max_helpers = 2;
    Row row(sizes_.size(), 0);
    row[pair.first] = pair.first_value;
    row[pair.second] = pair.second_value;
    if (!make_accepted(row, pair, 0, max_helpers)) return std::nullopt;
    const auto is_free = [&](std::size_t factor) { return factor != pair.first && factor != pair.second; };
    for (std::size_t factor = 0; factor < row.size(); ++factor) {
      if (!is_free(factor)) continue;
      Row best = row;
      for (std::size_t value = 0; value < sizes_[factor]; ++value) {
        Row other = row;
        other[factor] = value;
        if (gain(other, factor) > gain(best, factor) && accepted(other)) best = other;
      }
      row = best;
    }
    return row;
  }

  std::span<const std::size_t> sizes_;
  const std::function<bool(const Row&)>& accepts_;
  std::map<Row, bool> known_;
  std::set<FactorPair> missing_;
  Covering covering_;
};

}  // namespace

Covering cover_pairs(std::span<const std::size_t> sizes, const std::function<bool(const Row&)>& accepts) {
  return Cover(sizes, accepts).run();
}

}  // namespace gpubench::variants
