// Layer normalization on cuDNN, beside this backend's own kernels (layer_norm.h); layer_norm_choice.h says when.
#pragma once

#include <span>
#include <vector>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// For fastest_of(), best first by cuDNN's heuristics; empty where cuDNN has none, which is no reason to refuse the op.
[[nodiscard]] std::vector<Plan> cudnn_layer_norm_forward_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                               const CudaContext& context);
[[nodiscard]] std::vector<Plan> cudnn_layer_norm_backward_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                                const CudaContext& context);

}  // namespace gpubench::cuda
