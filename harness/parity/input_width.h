// Which part of its operands' numbers a product multiplies: all bits, or as many as a narrower type has.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/parity/probe_data.h"

namespace gpubench {

/// How a number is brought to fewer bits.
enum class Narrowing { to_even, to_away, to_zero };

/// `value` with so many significant bits.
[[nodiscard]] double narrowed(double value, int bits, Narrowing how);

/// Which part of an operand's numbers is multiplied.
struct InputWidth {
  enum class Kind { exact, tf32, bf16, two_bf16, fewer_bits, three_bf16, unknown };
  Kind kind = Kind::unknown;
  int bits = 0;       ///< significant ones that are multiplied; of `unknown` 0
  std::string words;  ///< "exact", "tf32, cut", "two bf16", "14 bits, rounded to nearest even"
  friend bool operator==(const InputWidth&, const InputWidth&) = default;
};

/// Numbers of the type that show it: they use all of its bits, or are halfway between neighbours in tf32 or bf16, which
/// tells how ties go. `key`: of the random ones.
[[nodiscard]] std::vector<double> width_numbers(DType type, const Exponents& range, std::uint64_t key);
inline constexpr int width_numbers_tried = 16;

/// What the plan made of these numbers of the type, each times 1. `unknown` where no width explains all of them.
[[nodiscard]] InputWidth width_of(DType type, const std::vector<double>& numbers, const std::vector<double>& results);

}  // namespace gpubench
