// Powers of two for sums of 2^E, s and -2^E: which E fit into the range of two operands, and how these share them, so
// that as few lines as possible give all E.
#pragma once

#include <cstdint>
#include <optional>

#include "harness/parity/probe_data.h"

namespace gpubench {

/// Of E the least: one of 2^3 and 1 must be exact in any sum. The most: more than f64 keeps.
inline constexpr int least_exponent = 3, most_exponent = 60;

/// Row i of the left operand and column v of the right one (of so many variants) make
/// E = (left + i) + (right + v rows) - unit; s is 2^one_left 2^one_right.
struct ExponentPlan {
  int first = least_exponent, last = 0;  ///< E
  int rows = 0, variants = 0;
  int left = 0, right = 0;
  int one_left = 0, one_right = 0;
  int high_left = 0, high_right = 0, high = 0;  ///< of rows with a single, large E

  [[nodiscard]] int unit() const { return one_left + one_right; }
  [[nodiscard]] int count() const { return last - first + 1; }
};

/// The exponent of s that leaves most room above it: 0 where there is plenty, else the least at which s is a normal
/// number of the operands, of the output and, but for 4-bit types, of sums in f16.
[[nodiscard]] int least_unit(const ProbeData& data);

/// As few variants as lead up to E = `enough`, else as far as it goes with two columns for each variant. None where no
/// E beyond a few does.
[[nodiscard]] std::optional<ExponentPlan> plan_exponents(const Exponents& left, const Exponents& right, int unit,
                                                         int enough, std::int64_t most_rows, std::int64_t most_columns);

}  // namespace gpubench
