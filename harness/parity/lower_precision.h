// Wrong results that a lower precision explains: an "f32" product of tf32 inputs, partial sums in 16 bits.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "reference/ops/definition.h"

namespace gpubench {

/// An arithmetic below the declared one, by the name that `--arithmetic` takes.
struct LowerArithmetic {
  std::string_view name;
  std::string_view words;
  friend bool operator==(const LowerArithmetic&, const LowerArithmetic&) = default;
};
namespace lower_arithmetic {
inline constexpr LowerArithmetic tf32{"tf32", "tf32 inputs"};
inline constexpr LowerArithmetic bf16{"bf16", "bf16 inputs"};
inline constexpr LowerArithmetic two_bf16{"bf16x2", "inputs split into two bf16"};
inline constexpr LowerArithmetic fewer_input_bits{"fewer_input_bits", "inputs of fewer bits"};
inline constexpr LowerArithmetic fast_f8{"fast_f8", "fast accumulation"};
inline constexpr LowerArithmetic f16_sums{"f16_sums", "sums in f16"};
inline constexpr LowerArithmetic bf16_sums{"bf16_sums", "sums in bf16"};
inline constexpr LowerArithmetic fewer_sum_bits{"fewer_sum_bits", "sums of fewer bits"};
inline constexpr LowerArithmetic split_k_in_output{"split_k_in_output", "partial sums rounded to the output's type"};
inline constexpr std::array all{tf32,     bf16,      two_bf16,       fewer_input_bits, fast_f8,
                                f16_sums, bf16_sums, fewer_sum_bits, split_k_in_output};
}  // namespace lower_arithmetic

/// The program with this arithmetic, by names of LowerArithmetic, declared instead of a higher one: for users who
/// accept it. Sums are those of ops that offer a product. Arithmetic without a bound (fewer_input_bits, fewer_sum_bits)
/// changes nothing.
[[nodiscard]] Program with_arithmetic(const Program& program, std::span<const std::string> names);

/// The name of the first arithmetic below the declared one that explains these elements of sums of products (ops with a
/// LinearAxis). Each element must be right within its bound; one must use a sixteenth of it or more (correct sums use
/// 0.07 to 0.6); one must be off by more than a wrong store can make it; and the elements must not all be the right
/// ones times one number. Tried, where the types have them: bf16 inputs (the declared bound, around sums of the rounded
/// inputs), tf32 inputs, fast accumulation, partial sums rounded to the output's type, sums in f16, sums in bf16. Empty
/// where none explains them. `wrong`: elements of the output outside the bound of the declared arithmetic, not empty;
/// only the first 4096 are examined.
[[nodiscard]] std::string lower_precision(const Operands& operands, int output, std::span<const Mismatch> wrong);

}  // namespace gpubench
