// Tensors as own kernels see them: storage types, and rows to walk through.
#pragma once

#include <optional>

#include "harness/core/row_view.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/element.h"

namespace gpubench::cuda {

/// row_view() of the tensor. Throws Unsupported naming the layout where it has none.
[[nodiscard]] RowView rows_of(const OpCall& call, const TensorSpec& tensor);

/// How own kernels name a type that they compute with; empty for others.
[[nodiscard]] std::optional<Element> element_of(DType dtype);

/// The storage type. Throws Unsupported unless it is f32, f16 or bf16.
[[nodiscard]] Element float_element(const OpCall& call, const TensorSpec& tensor);

/// As float_element(), and f64.
[[nodiscard]] Element any_element(const OpCall& call, const TensorSpec& tensor);

/// Throws Unsupported unless both have one type.
void expect_same_type(const OpCall& call, const TensorSpec& a, const TensorSpec& b);

}  // namespace gpubench::cuda
