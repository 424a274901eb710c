// Rows of a tensor, and what of them is worth a thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "harness/core/row_view.h"
#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// row_view() of the tensor. Throws Unsupported naming the layout where it has none.
[[nodiscard]] RowView rows_of(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless the type is f32 or bf16.
void expect_f32_or_bf16(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless the type is `type`.
void expect_type(const OpCall& call, const TensorSpec& tensor, DType type);

/// The same of those operands that the call has.
void expect_f32_or_bf16(const OpCall& call, const Named<TensorSpec>& operand,
                        std::initializer_list<std::string_view> names);
void expect_type(const OpCall& call, const Named<TensorSpec>& operand, std::initializer_list<std::string_view> names,
                 DType type);
void expect_row_major(const OpCall& call, const Named<TensorSpec>& operand,
                      std::initializer_list<std::string_view> names);

/// How many rows of `columns` elements are worth a thread.
[[nodiscard]] std::int64_t row_grain(std::int64_t columns);

/// How many elements are worth a thread; a multiple of every block size and cache line.
inline constexpr std::int64_t element_grain = 8192;

}  // namespace gpubench::cpu
