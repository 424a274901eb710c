// Pairwise covering arrays: few rows of values in which any two values of two factors occur together. Most defects of
// combinations take two (Kuhn, Wallace, Gallo, "Software fault interactions", IEEE TSE 30, 2004).
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace gpubench::variants {

/// The index of each factor's value.
using Row = std::vector<std::size_t>;

/// Value `first_value` of factor `first` with value `second_value` of factor `second`; first < second.
struct FactorPair {
  std::size_t first, first_value, second, second_value;
  friend auto operator<=>(const FactorPair&, const FactorPair&) = default;
};

struct Covering {
  std::vector<Row> rows;            ///< the first has value 0 of each factor, unless that is refused
  std::vector<FactorPair> refused;  ///< pairs for which no accepted row was found
};

/// `sizes`: the number of values of each factor, at least one. `accepts`: whether a row makes sense. A pair is refused
/// where no accepted row was found in which at most two other factors differ from value 0, and no row has it. A single
/// factor gets a row for each accepted value. Deterministic.
[[nodiscard]] Covering cover_pairs(std::span<const std::size_t> sizes, const std::function<bool(const Row&)>& accepts);

}  // namespace gpubench::variants
