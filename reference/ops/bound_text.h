// How OpDefinition::bound() tells people which rule an output is judged by. Beside the formulas, so that both are
// changed together: C is the sum that Rule G is about, Q the root of its summed squares, S that of the largest
// sums of neighbouring terms, as a mean (see sum_error_bound.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/core/recipe.h"

namespace gpubench {

/// Of outputs that are a selection of their inputs' elements.
inline constexpr std::string_view exact_bound = "exact, bitwise";

/// M of Rule G: what a partial sum amounts to.
inline constexpr std::string_view partial_sum_text = "max(|C| + Q, 2 S)";

/// Six digits at most: "0.125", "1e-08".
[[nodiscard]] std::string number_text(double value);
/// "2^-24"; "0" for 0.
[[nodiscard]] std::string power_text(double power_of_two);
/// `rule`, and the number that its u stands for: "u |y|, u = 2^-24".
[[nodiscard]] std::string bound_text(std::string rule, const Math& math);
/// "2 u sqrt(768) max(|C| + Q, 2 S)" for a sum of 768 terms.
[[nodiscard]] std::string sum_error_text(std::int64_t terms);
/// Of a sum whose every element has `terms` terms: "Rule G: 2 u sqrt(768) max(|C| + Q, 2 S), u = 2^-24".
[[nodiscard]] std::string sum_error_bound_text(std::int64_t terms, const Math& math);
/// Of a sum whose elements differ in their number of terms: "Rule G: 2 u sqrt(K) max(|C| + Q, 2 S), K <= 147, u =
/// 2^-24", with what `terms` says of K.
[[nodiscard]] std::string sum_error_bound_text(std::string_view terms, const Math& math);
/// " + 2.9e-09 |x|": what a factor loses when it is brought to the type that arithmetic runs in; empty for nothing.
[[nodiscard]] std::string lost_factor_text(double lost, std::string_view operand);

}  // namespace gpubench
