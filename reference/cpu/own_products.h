// Whole matrix products and convolutions by own kernels: candidates beside oneDNN's, and f64, which it lacks.
#pragma once

#include <optional>

#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"

namespace gpubench::cpu {

/// What plan_gemm() does with blocks: operands as the dense numbers that they stand for, then the product. All
/// row-major; bias, but neither beta nor GELU.
[[nodiscard]] Plan plan_block_scaled_gemm(const OpCall& call, std::span<const TensorSpec> tensors,
                                          const CpuContext& context);

/// c = a b with f32 sums along blocks of k, in an order that depends on the extents only. Nothing where it would not be
/// worth timing: without AMX, and for anything but plain products of bf16 matrices with extents in multiples of
/// block_grain.
[[nodiscard]] std::optional<Plan> plan_block_gemm(const OpCall& call, const MatmulRequest& request, int threads);

/// c = alpha a b + beta c + bias, all f64 and in any strides, with sums in f64 in an order that depends on the extents
/// only. `request`: of the call's tensors.
[[nodiscard]] Plan plan_gemm_f64(const OpCall& call, const MatmulRequest& request, int threads);

/// A convolution as products of small blocks (block_matmul.h). On AVX2 it takes 0.6 to 0.9 of the time of oneDNN 2.6,
/// which has no kernels for NEON at all; with AVX-512 it is as fast. For f32 images [n, h, w, c], row-major, with at
/// least 14 columns in the result: forward, or the gradient of x at stride 1, of dense filters of several pixels and
/// one group, with a multiple of 32 channels in the result. Nothing for others, and where there is AVX-512. `tensors`:
/// source, filter and destination, as ConvolutionRequest has them.
[[nodiscard]] std::optional<Plan> plan_block_conv(const OpCall& call, ConvolutionRequest::Pass pass,
                                                  std::span<const TensorSpec* const> tensors, int threads);

}  // namespace gpubench::cpu
