// Checks of tensors for builders, with their messages.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "harness/core/program.h"

namespace gpubench {

/// Throws ProgramError: "<op>: tensor '<name>' has shape [..]<because>; expected <expected>".
[[noreturn]] void refuse_shape(OpKind op, std::string_view tensor, const Shape& shape, std::string_view because,
                               std::string_view expected);

void expect_shape(OpKind op, const TensorSpec& tensor, const Shape& expected);
/// Throws ProgramError unless the tensor has `rank` axes and at least one element; `expected` is for the message.
void expect_axes(OpKind op, const TensorSpec& tensor, int rank, std::string_view expected);
/// Throws ProgramError unless both are [..., n] and the rows of `few` divide those of `many`.
void expect_rows_divide(OpKind op, const TensorSpec& few, const TensorSpec& many);
void expect_float(OpKind op, const TensorSpec& tensor);
/// Requires a floating-point type, and rows of at least one element.
void expect_float_rows(OpKind op, const TensorSpec& tensor);
void expect_dtype(OpKind op, const TensorSpec& tensor, DType expected);
void expect_tensor(const Program& program, OpKind op, ValueId id, const Shape& shape, DType dtype);
void expect_float_tensor(const Program& program, OpKind op, ValueId id, const Shape& shape);

/// The role of a result: gradient if any operand is one, else activation.
[[nodiscard]] Role role_of_result(const Program& program, std::initializer_list<ValueId> operands);

/// The type of statistics (mean, rstd, log-sum-exp): f64 for f64, else f32.
[[nodiscard]] DType statistic_type(DType data);

/// The type of a value's gradient: its own, but bf16 for 8-bit values, whose gradients a separate op quantizes.
[[nodiscard]] DType gradient_type(DType value);

/// Puts an output on the rank of `like`, an operand of its op, and names it `name`, with "@<rank>" if other ranks have
/// the same, and a number if the name is taken.
void place_like(Program& program, ValueId like, std::string_view name, TensorSpec& output);
/// Reserves a row-major output by place_like().
[[nodiscard]] ValueId reserve_output(Program& program, ValueId like, std::string_view name, DType dtype,
                                     const Shape& shape, Role role);
[[nodiscard]] ValueId reserve_like(Program& program, ValueId like, std::string_view name, Role role);

/// `into`, checked for the output's shape and a floating-point type, or else a new reservation.
[[nodiscard]] ValueId output_or_reserve(Program& program, OpKind op, const std::optional<ValueId>& into, ValueId like,
                                        std::string_view name, DType dtype, const Shape& shape, Role role);

/// The next version of `old`, named "<old>'".
[[nodiscard]] ValueId update_output(Program& program, ValueId old);

}  // namespace gpubench
