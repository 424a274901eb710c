// A tensor as rows: what the memory-bound kernels can walk through.
#pragma once

#include <cstdint>
#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// `rows` runs of `columns` consecutive elements, `stride` elements from the start of one to the start of the next.
struct RowView {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t stride = 1;

  [[nodiscard]] std::int64_t elements() const { return rows * columns; }
  friend bool operator==(const RowView&, const RowView&) = default;
};

/// The last axis as columns, all others as rows: dense tensors, and parts of a wider row (q of packed qkv). Throws
/// Unsupported naming the layout where the last axis is not contiguous or the others are not evenly spaced.
[[nodiscard]] RowView rows_of(const OpCall& call, const TensorSpec& tensor);

/// Views of tensors of one shape for an op that treats every element alike. Where all are dense in one and the same
/// order (row-major, NHWC) that is a single row of everything, else rows_of().
[[nodiscard]] bool share_one_run(std::span<const TensorSpec> tensors);

/// True when the tensor fills its memory without gaps, in whatever order.
[[nodiscard]] bool is_dense(const TensorSpec& tensor);

/// Throws Unsupported unless the type is f32 or bf16.
void expect_f32_or_bf16(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless the type is `type`.
void expect_type(const OpCall& call, const TensorSpec& tensor, DType type);

/// How many rows of `columns` elements are worth a thread.
[[nodiscard]] std::int64_t row_grain(std::int64_t columns);

/// How many elements are worth a thread; a multiple of every block size and cache line.
inline constexpr std::int64_t element_grain = 8192;

}  // namespace gpubench::cpu
