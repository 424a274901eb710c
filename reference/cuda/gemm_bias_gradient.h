// Products with a bias gradient beside them (reference/ops/gemm_bias_gradient.h): cuBLASLt's epilogues for it, raced
// against its products with own kernels behind them.
//
// What the library's manual and header say of these epilogues: bias gradients have the type of the result; the
// pre-activation's row stride is a multiple of 8. Which combinations of types and layouts there are, only its
// heuristics tell; where they propose nothing, own kernels remain, so that no case is lost by fusing.
//
// Two things they don't say, and there the library's sums are left out: in which order tiles add up (under
// --deterministic), and whether an operand is summed up before or after its elements are cut to tf32.
#pragma once

#include <span>

#include "reference/cuda/kernel.h"

namespace gpubench::cuda {

/// Candidates: DGELU with the library's sum; DGELU and an own column_sum; the product unrounded, in dz or in scratch
/// memory, and one own kernel for slope and sum. The library knows the tanh form only.
[[nodiscard]] Plan plan_gemm_gelu_bias_gradient(const OpCall& call, std::span<const TensorSpec> tensors,
                                                const CudaContext& context);
/// Candidates: the library's sum, or an own column_sum.
[[nodiscard]] Plan plan_gemm_weight_bias_gradient(const OpCall& call, std::span<const TensorSpec> tensors,
                                                  const CudaContext& context);

}  // namespace gpubench::cuda
