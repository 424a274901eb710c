// What builders require of their tensors, and the messages that a workload's author reads otherwise.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/program.h"

namespace gpubench {

/// "<op>: tensor '<name>' has shape [..]<because>; expected <expected>".
[[noreturn]] void refuse_shape(OpKind op, std::string_view tensor, const Shape& shape, std::string_view because,
                               std::string_view expected);

/// Throws ProgramError unless the tensor has exactly this shape.
void expect_shape(OpKind op, const TensorSpec& tensor, const Shape& expected);
/// Throws ProgramError unless the tensor has this many axes and at least one element; `expected` is for the message.
void expect_axes(OpKind op, const TensorSpec& tensor, int rank, std::string_view expected);
/// Throws ProgramError unless `few` is [..., n] like `many`, and its rows are a divisor of many's: each of them stands
/// for as many consecutive ones.
void expect_rows_divide(OpKind op, const TensorSpec& few, const TensorSpec& many);
/// Throws ProgramError unless the tensor is of a floating-point type.
void expect_float(OpKind op, const TensorSpec& tensor);
/// The same; also throws unless it has rows of at least one element.
void expect_float_rows(OpKind op, const TensorSpec& tensor);
/// Throws ProgramError unless the tensor is of this type.
void expect_dtype(OpKind op, const TensorSpec& tensor, DType expected);
/// Both of a value: its shape, then its type, or that it is of a floating-point type.
void expect_tensor(const Program& program, OpKind op, ValueId id, const Shape& shape, DType dtype);
void expect_float_tensor(const Program& program, OpKind op, ValueId id, const Shape& shape);

/// Gradient if any of the values is one, else activation: the role of what an op computes from them.
[[nodiscard]] Role role_of_result(const Program& program, std::initializer_list<ValueId> operands);

/// The type of statistics (mean, rstd, log-sum-exp) of data of this type: f64 for f64, else f32.
[[nodiscard]] DType statistic_type(DType data);

/// The type of gradients of a value of this type: the same, but bf16 for 8-bit values (the gradient of the numbers
/// that they represent, which an op of its own quantizes).
[[nodiscard]] DType gradient_type(DType value);

/// Puts an output on the rank of `like`, an operand of the op that makes it, and names it: `name` (with "@<rank>" where
/// other ranks have the same), with a number appended where that is taken.
void place_like(Program& program, ValueId like, std::string_view name, TensorSpec& output);
/// Reserves a row-major output, placed and named so.
[[nodiscard]] ValueId reserve_output(Program& program, ValueId like, std::string_view name, DType dtype,
                                     const Shape& shape, Role role);
/// One with the type and shape of `like`.
[[nodiscard]] ValueId reserve_like(Program& program, ValueId like, std::string_view name, Role role);

/// `into` after checking that it has the shape of the output and a floating-point type; a new reservation without it.
[[nodiscard]] ValueId output_or_reserve(Program& program, OpKind op, const std::optional<ValueId>& into, ValueId like,
                                        std::string_view name, DType dtype, const Shape& shape, Role role);

/// The next version of `old`, named "<old>'".
[[nodiscard]] ValueId update_output(Program& program, ValueId old);

}  // namespace gpubench
