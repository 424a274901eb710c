// Tensors as own kernels see them: storage types, and rows to walk through.
#pragma once

#include <span>

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/element.h"

namespace gpubench::cuda {

/// The last axis as columns, all others as rows: dense tensors, and parts of a wider row (q of packed qkv). Throws
/// Unsupported naming the layout where the last axis is not contiguous or the others are not evenly spaced.
[[nodiscard]] Rows rows_of(const OpCall& call, const TensorSpec& tensor);

/// Views of tensors of one shape for an op that treats every element alike. Where all are dense in one and the same
/// order (row-major, NHWC) that may be a single row of everything.
[[nodiscard]] bool share_one_run(std::span<const TensorSpec> tensors);

/// True when the tensor fills its memory without gaps, in whatever order.
[[nodiscard]] bool is_dense(const TensorSpec& tensor);

/// The storage type. Throws Unsupported unless it is f32, f16 or bf16.
[[nodiscard]] Element float_element(const OpCall& call, const TensorSpec& tensor);

/// As float_element(), and f64.
[[nodiscard]] Element any_element(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless both have one type.
void expect_same_type(const OpCall& call, const TensorSpec& a, const TensorSpec& b);

}  // namespace gpubench::cuda
