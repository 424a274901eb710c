// Who computes a layer normalization: own kernels (layer_norm.h), or cuDNN (layer_norm_cudnn.h) where it is asked for
// by name. Apart from both, since own kernels are tested without cuDNN.
//
// The two don't race. The tuner takes the fastest without a look at its results, and nowhere does cuDNN say how it sums
// up a variance: a sum of squares in one pass breaks the bound for rows far from zero. Until its results have been
// judged on a GPU (tests/reference/cuda/gpu_test.cpp does that) it would put verdicts of whole training steps at stake.
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Own kernels, or the one of cuDNN's engines that the call is pinned to ("cudnn:eng=..."). Throws Unsupported as
/// layer_norm.h says, and for an engine that cuDNN does not propose here.
[[nodiscard]] Plan choose_layer_norm_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                             const CudaContext& context);
[[nodiscard]] Plan choose_layer_norm_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                              const CudaContext& context);

}  // namespace gpubench::cuda
