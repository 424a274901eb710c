// Planning that several op files share. All throw Unsupported, with the library's words where it is a library that
// lacks something.
#pragma once

#include <span>
#include <vector>

#include "reference/cuda/cublaslt.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/elements.h"
#include "reference/ops/gemm.h"

namespace gpubench::cuda {

using PlanFunction = Plan(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);

/// Attention without tensor cores, and so not in tf32: f32, f16, bf16; heads of up to 256 elements, any strides between
/// them. No atomic additions.
PlanFunction plan_tiled_attention_forward, plan_tiled_attention_backward;

/// All row-major; what belongs to channels f32 (f64 for f64).
PlanFunction plan_batch_norm_forward;
/// plan_batch_norm_forward, of channel sums that are in its workspace when it starts: [2][batch_norm_sum_stride(c)] in
/// f32, of x's elements and of their squares.
PlanFunction plan_batch_norm_of_sums;

/// cuDNN's ways to convolve, of a conv2d_batch_norm_forward: plans for x, filter, product; the same with the product's
/// channel sums, for two more tensors, of f32 [k]. Throw Unsupported where there is none.
[[nodiscard]] std::vector<Plan> convolution_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                  const CudaContext& context);
[[nodiscard]] std::vector<Plan> convolution_and_sums_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                           const CudaContext& context);
/// What moves x's elements to where y's layout has them, without addresses: for ops that move elements among other
/// things. Throws Unsupported for blocked layouts and for more than max_move_axes axes.
[[nodiscard]] MoveArgs move_of(const OpCall& call, const TensorSpec& x, const TensorSpec& y);
/// The plan of a move on the device.
[[nodiscard]] Plan plan_move(const MoveArgs& args, const OpCall& call, const CudaContext& context);

// A gemm's tensors in the terms of cuBLASLt's wrapper: what the ops that multiply matrices have in common.

/// The tensor at one of GemmRoles' positions.
[[nodiscard]] const TensorSpec& at(std::span<const TensorSpec> tensors, int index);

/// A matrix whose last axis is dense, or, where `transposed` may be turned, whose last but one is. Throws Unsupported
/// naming the tensor for other layouts.
[[nodiscard]] RowMatrix matrix_of(const OpCall& call, const TensorSpec& tensor, bool* transposed);

/// The product, with no epilogue but the bias. Throws Unsupported naming the tensor that the device has no arithmetic
/// for, or that has a layout or type that the library has not.
[[nodiscard]] MatmulRequest request_of(const OpCall& call, const Gemm& attributes, std::span<const TensorSpec> tensors,
                                       const GemmRoles& roles, const CudaContext& context);

/// The next multiple of 256 bytes, at which the library wants its workspace to begin.
[[nodiscard]] std::size_t workspace_aligned(std::size_t bytes);

/// Null for a position of -1.
[[nodiscard]] void* address_of(std::span<const Tensor> bound, int index);

/// `target`: where the product goes, c unless something follows it.
[[nodiscard]] MatmulAddresses addresses_of(std::span<const Tensor> bound, Workspace workspace, const GemmRoles& roles,
                                           int target);

}  // namespace gpubench::cuda
