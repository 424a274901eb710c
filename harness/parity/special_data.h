// Data that arithmetic treats apart: NaN, infinities, zeros, denormals, constants. An op that was right on numbers from
// a normal distribution may lose a NaN, flush denormals, or leave the result of other data.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/core/enum_names.h"
#include "harness/parity/textbook_outputs.h"

namespace gpubench {

enum class SpecialKind { nan, infinity, zeros, denormals, constants };
template <>
inline constexpr auto enum_names<SpecialKind> = std::to_array<std::string_view>({"NaN", "infinity", "zeros",
                                                                                 "denormals", "constants"});

/// Operands of an op, what it leaves rightly, and what it leaves where it treats them wrongly.
struct SpecialData {
  SpecialKind kind = SpecialKind::nan;
  std::string name;  ///< "'a'", the operand; empty where it is all of them
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> right;  ///< by the textbook, rounded
  /// Of NaN and infinity: as if the number that was there before still were; of denormals: as if they were zeros; of
  /// zeros and constants: the result of `inputs` as they were.
  std::vector<HostTensor> wrong;
};

/// `inputs` with one element of one float operand NaN or infinite, for each of the first seven and the last; and with
/// all float operands zeros, denormals (1 to 7 times the smallest number, with the signs as they were) and constants
/// (their first element). Types without NaN or infinity have none. Empty where no operand is a float.
[[nodiscard]] std::vector<SpecialData> special_data(const OpCall& call, std::span<const HostTensor> inputs,
                                                    std::span<const TensorSpec> outputs);

}  // namespace gpubench
