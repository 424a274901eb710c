// Tensor specs as oneDNN describes memory.
#pragma once

#include <initializer_list>
#include <vector>

#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"

namespace gpubench::cpu {

/// The tensor with its axes in the order that oneDNN counts them: axis i of the result is axis order[i] of the tensor.
/// Throws Unsupported for blocked layouts.
[[nodiscard]] MemoryShape memory_shape(const OpCall& call, const TensorSpec& tensor, const std::vector<int>& order);

/// `shape` with harmless strides on axes of one element. Any stride is right there, but oneDNN recognizes layouts by
/// their strides, and falls back to slow code for those it does not know.
[[nodiscard]] MemoryShape with_plain_strides(MemoryShape shape);

}  // namespace gpubench::cpu
