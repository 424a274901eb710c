// A tensor as rows, for memory-bound kernels of any backend.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "harness/core/tensor.h"

namespace gpubench {

/// The last axis as columns, all others as rows: dense tensors, and parts of a wider row (q of packed qkv). None where
/// the layout is blocked, the last axis is not contiguous or the others are not evenly spaced, and where elements are
/// narrower than a byte.
[[nodiscard]] std::optional<RowView> row_view(const TensorSpec& tensor);

/// Whether tensors of one shape, for an op that treats every element the same, can each be read as a single row: all
/// are dense in the same order (row-major, NHWC).
[[nodiscard]] bool share_one_run(std::span<const TensorSpec> tensors);

/// True when the tensor fills its memory without gaps, in any order.
[[nodiscard]] bool is_dense(const TensorSpec& tensor);

}  // namespace gpubench
