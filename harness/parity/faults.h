// Faults of the textbook: injected into ops (fault_catalogue.h) and compared with wrong results (likely_cause.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "harness/core/enum_names.h"
#include "harness/core/program.h"
#include "harness/parity/textbook_outputs.h"
#include "reference/ops/definition.h"

namespace gpubench {

// Faults before any arithmetic: an operand read wrongly, or another attribute.

enum class CallFault {
  operand_left_out,
  end_left_out,
  end_doubled,
  ends_swapped,
  operand_shifted,
  axes_swapped,
  axis_reversed,
  operand_narrower,
  one_sign,
  wrong_index,
  wrong_constant,
  wrong_epsilon,
  wrong_switch,
  wrong_geometry
};
template <>
inline constexpr auto enum_names<CallFault> = std::to_array<std::string_view>(
    {"operand left out", "end of an axis left out", "end of an axis counted twice",
     "end of an axis swapped with its neighbour", "operand shifted by one along an axis",
     "two axes of an operand swapped", "an axis of an operand reversed", "operand cut to fewer bits",
     "one sign of an operand flipped", "wrong index", "constant off by 2^-6", "epsilon tenfold", "switch the other way",
     "padding, stride or window off by one"});

/// Copied and changed elements of operands in one search for a likely cause, in total: some seconds.
inline constexpr std::int64_t max_changed_elements = std::int64_t{1} << 25;

struct WrongCall {
  CallFault fault = CallFault::operand_left_out;
  std::string detail;                         ///< "axis 1 of 'a'"
  OpCall call;                                ///< with the other attribute
  std::size_t input = 0;                      ///< the operand that is read wrongly
  std::function<void(HostTensor&)> change{};  ///< changes the operand; empty where an attribute differs
};

/// All faults that apply to this call; of long lists of operands, those of some_operands().
[[nodiscard]] std::vector<WrongCall> wrong_calls(const OpCall& call, std::span<const TensorSpec> inputs,
                                                 std::span<const TensorSpec> outputs);

/// Reads element [.., i, .., j, ..] where [.., j, .., i, ..] of a tensor with the two extents swapped would be.
void swap_axes(HostTensor& tensor, int first, int second);
[[nodiscard]] std::int64_t swapped_place(const Shape& shape, int first, int second, std::int64_t linear);
/// The element of an output of this shape that is written to `place` where two of its axes are swapped.
[[nodiscard]] std::int64_t written_to(const Shape& shape, int first, int second, std::int64_t place);

// Formulas of other libraries or common mistakes: other defaults, epsilon elsewhere, n - 1 for n, one more rounding.

/// A numeric attribute of the op; nothing where it has none of this name.
[[nodiscard]] std::optional<double> number_of(const OpCall& call, std::string_view attribute);

struct OtherFormula {
  std::string name;  ///< "variance over n - 1"
  /// Results for these elements of the output (logical linear indices), with the bound of the op's own formula.
  std::function<std::vector<Expected>(std::span<const std::int64_t> elements)> values;
};

/// Formulas that give other numbers in this output. They refer to `operands`.
[[nodiscard]] std::vector<OtherFormula> other_formulas(const Operands& operands, int output);

// Formulas that are right on paper and cancel, overflow or saturate. The usual data of a case may not show this.

struct UnstableForm {
  std::string_view name;  ///< "variance as E[x^2] - E[x]^2"
  std::vector<HostTensor> left;
};

/// The unstable forms of an op, each with its outputs for these inputs, in the call's arithmetic. `right`: the correct
/// outputs. Outputs that depend on an overflowing exponential, or on a sum of 0, are NaN. A variance that cancels
/// changes only the reciprocal deviation.
[[nodiscard]] std::vector<UnstableForm> unstable_forms(const OpCall& call, std::span<const HostTensor> inputs,
                                                       std::span<const HostTensor> right);

// Data that arithmetic treats specially: an op may lose a NaN, flush denormals, or leave another result.

enum class SpecialKind { nan, infinity, zeros, denormals, constants };
template <>
inline constexpr auto enum_names<SpecialKind> = std::to_array<std::string_view>({"NaN", "infinity", "zeros",
                                                                                 "denormals", "constants"});

struct SpecialData {
  SpecialKind kind = SpecialKind::nan;
  std::string name;  ///< "'a'", the operand; empty for all of them
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> right;  ///< by the textbook, rounded
  /// NaN and infinity: as if the earlier number were still there; denormals: as if they were zeros; zeros and
  /// constants: the result of the unchanged `inputs`.
  std::vector<HostTensor> wrong;
};

/// `inputs` with one element of one float operand NaN or infinite, for each of the first seven and the last. Also with
/// all float operands zeros, denormals (1 to 7 times the smallest number, with the original signs) and constants (their
/// first element). Types without NaN or infinity have no such data. Empty if no operand is a float.
[[nodiscard]] std::vector<SpecialData> special_data(const OpCall& call, std::span<const HostTensor> inputs,
                                                    std::span<const TensorSpec> outputs);

}  // namespace gpubench
