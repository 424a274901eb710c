// Planning shared by op files. All functions throw Unsupported, with the library's message if a library refuses.
#pragma once

#include <span>
#include <vector>

#include "reference/cuda/cublaslt.h"
#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/elements.h"
#include "reference/ops/gemm.h"

namespace gpubench::cuda {

using PlanFunction = Plan(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);

/// Attention without tensor cores, hence not in tf32: f32, f16, bf16; heads of up to 256 elements with any strides
/// between them. Deterministic: no atomic additions.
PlanFunction plan_tiled_attention_forward, plan_tiled_attention_backward;

/// Row-major tensors; channel tensors f32 (f64 for f64).
PlanFunction plan_batch_norm_forward;
/// As plan_batch_norm_forward, but reads channel sums from its workspace: [2][batch_norm_sum_stride(c)] in f32, sums of
/// x and of x^2.
PlanFunction plan_batch_norm_of_sums;

/// cuDNN's convolutions of a conv2d_batch_norm_forward: plans for (x, filter, product). The second also returns the
/// product's channel sums in two more f32 tensors [k]. Throw Unsupported if cuDNN has none.
[[nodiscard]] std::vector<Plan> convolution_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                  const CudaContext& context);
[[nodiscard]] std::vector<Plan> convolution_and_sums_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                           const CudaContext& context);
/// Moves x's elements to y's layout; addresses not set. Throws Unsupported for blocked layouts and more than
/// max_move_axes axes.
[[nodiscard]] MoveArgs move_of(const OpCall& call, const TensorSpec& x, const TensorSpec& y);
[[nodiscard]] Plan plan_move(const MoveArgs& args, const OpCall& call, const CudaContext& context);

[[nodiscard]] const TensorSpec& at(std::span<const TensorSpec> tensors, int index);

/// A matrix whose last axis is dense; with `transposed`, also one whose last but one axis is dense. Throws Unsupported
/// naming the tensor for other layouts.
[[nodiscard]] RowMatrix matrix_of(const OpCall& call, const TensorSpec& tensor, bool* transposed);

/// The product without an epilogue other than the bias. Throws Unsupported naming the tensor whose arithmetic the
/// device lacks, or whose layout or type cuBLASLt lacks.
[[nodiscard]] MatmulRequest request_of(const OpCall& call, const Gemm& attributes, std::span<const TensorSpec> tensors,
                                       const GemmRoles& roles, const CudaContext& context);

/// The next multiple of 256 bytes, the alignment that cuBLASLt wants for its workspace.
[[nodiscard]] std::size_t workspace_aligned(std::size_t bytes);

/// Null for a position of -1.
[[nodiscard]] void* address_of(std::span<const Tensor> bound, int index);

/// `target`: position of the product's destination; c unless another step follows.
[[nodiscard]] MatmulAddresses addresses_of(std::span<const Tensor> bound, Workspace workspace, const GemmRoles& roles,
                                           int target);

}  // namespace gpubench::cuda
