// Formulas that other libraries use for an op, or that are easily taken for its own: another default, epsilon in
// another place, n - 1 for n, one more rounding.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "reference/ops/definition.h"

namespace gpubench {

struct OtherFormula {
  std::string name;  ///< "variance over n - 1"
  /// What it makes of these elements of the output (logical linear indices), within the bound of the op's own formula.
  std::function<std::vector<Expected>(std::span<const std::int64_t> elements)> values;
};

/// Those that give other numbers in this output. They are valid as long as what `operands` refers to.
[[nodiscard]] std::vector<OtherFormula> other_formulas(const Operands& operands, int output);

}  // namespace gpubench
