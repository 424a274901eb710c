#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "harness/core/tensor.h"

namespace gpubench {

/// The last axis as columns, all others as rows: dense tensors, and parts of a wider row (q of packed qkv). None for
/// blocked layouts, a non-contiguous last axis, unevenly spaced rows, and elements narrower than a byte.
[[nodiscard]] std::optional<RowView> row_view(const TensorSpec& tensor);

/// Whether tensors of one shape can be read as a single row by an elementwise op: all dense in the same order
/// (row-major, NHWC).
[[nodiscard]] bool share_one_run(std::span<const TensorSpec> tensors);

[[nodiscard]] bool is_dense(const TensorSpec& tensor);

}  // namespace gpubench
