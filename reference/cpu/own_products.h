// Matrix products and convolutions by own kernels: alternatives to oneDNN's, and f64, which oneDNN lacks.
#pragma once

#include <optional>

#include "reference/cpu/kernel.h"
#include "reference/cpu/onednn.h"

namespace gpubench::cpu {

/// plan_gemm() for block-scaled operands: converts them to dense numbers, then multiplies. Row-major; bias, but neither
/// beta nor GELU.
[[nodiscard]] Plan plan_block_scaled_gemm(const OpCall& call, std::span<const TensorSpec> tensors,
                                          const CpuContext& context);

/// c = a b with f32 sums along blocks of k, in an order that depends on the extents only. Empty if not worth timing:
/// without AMX, and unless it is a plain bf16 product with extents in multiples of block_grain.
[[nodiscard]] std::optional<Plan> plan_block_gemm(const OpCall& call, const MatmulRequest& request, int threads);

/// c = alpha a b + beta c + bias, all f64, any strides, f64 sums in an order that depends on the extents only.
/// `request`: for the call's tensors.
[[nodiscard]] Plan plan_gemm_f64(const OpCall& call, const MatmulRequest& request, int threads);

/// A convolution as products of small blocks (block_matmul.h). On AVX2 it takes 0.6 to 0.9 of the time of oneDNN 2.6;
/// on NEON oneDNN has no kernels; with AVX-512 it is as fast as oneDNN.
///
/// For f32 row-major images [n, h, w, c]: the forward, or x's gradient at stride 1. Dense filters of several pixels,
/// one group, at least 14 result columns, a multiple of 32 result channels. Empty for other calls and with AVX-512.
/// `tensors`: source, filter, destination, as in ConvolutionRequest.
[[nodiscard]] std::optional<Plan> plan_block_conv(const OpCall& call, ConvolutionRequest::Pass pass,
                                                  std::span<const TensorSpec* const> tensors, int threads);

}  // namespace gpubench::cpu
