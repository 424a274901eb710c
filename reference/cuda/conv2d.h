// Planning of convolution and its two gradients (reference/ops/conv2d.h) on cuDNN.
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Every type that cuDNN has for NHWC convolution; dfilter may be f32 where x and dy are narrower. Winograd and Fourier
/// transforms are never used: their errors are not those of a sum of products. Throws Unsupported with cuDNN's words.
[[nodiscard]] Plan plan_conv2d_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                       const CudaContext& context);
[[nodiscard]] Plan plan_conv2d_backward_data(const OpCall& call, std::span<const TensorSpec> tensors,
                                             const CudaContext& context);
[[nodiscard]] Plan plan_conv2d_backward_filter(const OpCall& call, std::span<const TensorSpec> tensors,
                                               const CudaContext& context);

}  // namespace gpubench::cuda
