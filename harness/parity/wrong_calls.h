// Calls that go wrong before any arithmetic: an operand read wrongly, or another attribute. What the textbook makes of
// them is injected (fault_catalogue.h), and compared with wrong results (likely_cause.h).
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

namespace gpubench {

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

/// Elements of operands that are copied and changed to find a likely cause, in all: some seconds.
inline constexpr std::int64_t most_changed_elements = std::int64_t{1} << 25;

struct WrongCall {
  CallFault fault = CallFault::operand_left_out;
  std::string detail;                         ///< "axis 1 of 'a'"
  OpCall call;                                ///< with the other attribute
  std::size_t input = 0;                      ///< the operand that is read wrongly
  std::function<void(HostTensor&)> change{};  ///< what is read of it; empty where an attribute differs
};

/// All that the op takes of this call; of long lists of operands, those of some_operands().
[[nodiscard]] std::vector<WrongCall> wrong_calls(const OpCall& call, std::span<const TensorSpec> inputs,
                                                 std::span<const TensorSpec> outputs);

/// The tensor as it is read where two of its axes are taken for each other: element [.., i, .., j, ..] is read where
/// [.., j, .., i, ..] of a tensor with the two extents swapped would be.
void swap_axes(HostTensor& tensor, int first, int second);
/// The place from which swap_axes() takes an element; both are logical linear indices.
[[nodiscard]] std::int64_t swapped_place(const Shape& shape, int first, int second, std::int64_t linear);
/// The element of an output of this shape that is written to a place where two of its axes are taken for each other.
[[nodiscard]] std::int64_t written_to(const Shape& shape, int first, int second, std::int64_t place);

}  // namespace gpubench
