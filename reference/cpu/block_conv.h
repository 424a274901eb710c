// Convolutions as products of small blocks (block_matmul.h). On vectors of AVX2 they take 0.6 to 0.9 of the time of
// oneDNN 2.6, whose kernels are not written for NEON at all; with AVX-512 they are as fast as it.
#pragma once

#include <optional>

#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"

namespace gpubench::cpu {

/// For f32 images [n, h, w, c], row-major, with at least 14 columns in the result: forward, or the gradient of x at
/// stride 1, of dense filters of several pixels and one group, with a multiple of 32 channels in the result. Nothing
/// for others, and where there is AVX-512. `tensors`: source, filter and destination, as ConvolutionRequest has them.
[[nodiscard]] std::optional<Plan> plan_block_conv(const OpCall& call, ConvolutionRequest::Pass pass,
                                                  std::span<const TensorSpec* const> tensors, int threads);

}  // namespace gpubench::cpu
