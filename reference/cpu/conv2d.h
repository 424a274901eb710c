// conv2d and its two gradients on oneDNN's convolution, NHWC as the tensors lie.
#pragma once

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// reference/ops/conv2d.h, in f32 and bf16 with f32 sums; dfilter may be f32 where x and dy are bf16. Filters are
/// brought into the library's own layout inside the work where that pays. Throws Unsupported with oneDNN's words.
[[nodiscard]] Plan plan_conv2d_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                       const CpuContext& context);
[[nodiscard]] Plan plan_conv2d_backward_data(const OpCall& call, std::span<const TensorSpec> tensors,
                                             const CpuContext& context);
[[nodiscard]] Plan plan_conv2d_backward_filter(const OpCall& call, std::span<const TensorSpec> tensors,
                                               const CpuContext& context);

}  // namespace gpubench::cpu
