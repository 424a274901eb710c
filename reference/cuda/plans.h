// Planning that several op files share. All throw Unsupported, with the library's words where it is a library that
// lacks something.
#pragma once

#include <vector>

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/elements.h"

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
/// things. Throws Unsupported for blocked layouts and for more than most_move_axes axes.
[[nodiscard]] MoveArgs move_of(const OpCall& call, const TensorSpec& x, const TensorSpec& y);
/// The plan of a move on the device.
[[nodiscard]] Plan plan_move(const MoveArgs& args, const OpCall& call, const CudaContext& context);

}  // namespace gpubench::cuda
