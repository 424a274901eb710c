// Every function that plans an op on a GPU. reference/ops says what the ops mean; here stands what this backend has of
// each. All throw Unsupported, with the library's words where it is a library that lacks something.
#pragma once

#include <vector>

#include "reference/cuda/kernel.h"
#include "reference/cuda/kernels/move.h"

namespace gpubench::cuda {

/// `tensors`: the specs of the call's inputs, then its outputs.
using PlanFunction = Plan(const OpCall& call, std::span<const TensorSpec> tensors, const CudaContext& context);

/// Of the algorithms that cuBLASLt's heuristics propose, the fastest on this device.
PlanFunction plan_gemm;
/// cuBLASLt's epilogues, raced against its products with own kernels behind them. DGELU with the library's sum; DGELU
/// and an own column_sum; the product unrounded, in dz or in scratch memory, and one own kernel for slope and sum.
PlanFunction plan_gemm_gelu_bias_gradient;
/// The library's sum, or an own column_sum.
PlanFunction plan_gemm_weight_bias_gradient;

// On cuDNN.
/// NHWC, every type that cuDNN has; dfilter may be f32 where x and dy are narrower. Winograd and Fourier transforms are
/// never used: their errors are not those of a sum of products.
PlanFunction plan_conv2d_forward, plan_conv2d_backward_data, plan_conv2d_backward_filter;
/// The convolution with the channel sums of its product as one graph, where cuDNN has one (f16, bf16 and tf32), and
/// own kernels for what follows from them; raced against the convolution alone and batch_norm_forward's kernels.
PlanFunction plan_conv2d_batch_norm_forward;
/// f16 and bf16 (f32 only as TF32, and forward only); q, k, v, o and their gradients may be strided parts of packed
/// storages; head sizes that are multiples of 8. Backward: with `context.options.deterministic`, dq is summed up
/// without atomic additions, for which scores of all heads are kept: a workspace of b hq s^2 elements. What cuDNN
/// refuses is planned as tiled attention.
PlanFunction plan_attention_forward, plan_attention_backward;

// Own kernels, f64, f32, f16 and bf16 where nothing else is said; rows may have a stride.
/// Attention without tensor cores, and so not in tf32: f32, f16, bf16; heads of up to 256 elements, any strides between
/// them. No atomic additions.
PlanFunction plan_tiled_attention_forward, plan_tiled_attention_backward;
PlanFunction plan_attention_merge;
/// On the device an own kernel (any type and strides, without blocks; at most 8 axes remain after neighbouring ones are
/// joined); else CUDA's copy, which moves dense tensors of one layout as bytes.
PlanFunction plan_copy;
/// Any type and strides, as plan_copy on the device.
PlanFunction plan_reorder, plan_repeat_rows, plan_transpose;
/// Every op of reference/ops/pointwise.h. Dense in one order, or rows with a stride; cast between any two types.
PlanFunction plan_pointwise;
/// Dense in one order, or rows with a stride.
PlanFunction plan_dropout;
/// f64 to f64 only.
PlanFunction plan_column_sum;
/// Parameters of the data's type, or f32 with a narrower one; statistics f64 for f64, else f32.
PlanFunction plan_norm_forward, plan_norm_backward;
/// x, r, sum and y in one type.
PlanFunction plan_residual_norm_forward;
/// All row-major; what belongs to channels f32 (f64 for f64).
PlanFunction plan_batch_norm_forward, plan_batch_norm_backward;
/// All row-major.
PlanFunction plan_max_pool_forward, plan_max_pool_backward, plan_average_pool_forward, plan_average_pool_backward;
/// Any strides between heads, tokens and sequences.
PlanFunction plan_rotary;
/// Loss and log-sum-exp f64 for f64, else f32; dlogits has the logits' type and may be in their place.
PlanFunction plan_cross_entropy_forward, plan_cross_entropy_backward, plan_cross_entropy_forward_backward;
PlanFunction plan_cross_entropy_combine, plan_count_labels;
/// Any type.
PlanFunction plan_embedding_forward;
PlanFunction plan_softmax_forward, plan_softmax_backward;
/// All row-major; up to 32 experts a token.
PlanFunction plan_routing_forward, plan_routing_backward;
/// All row-major.
PlanFunction plan_group_tokens, plan_permute_tokens, plan_unpermute_tokens, plan_unpermute_backward_weights;
/// All row-major; on tensor cores in f16 and bf16 only, so not in tf32. c may be f32 where a and b are narrower.
PlanFunction plan_grouped_gemm, plan_grouped_gemm_backward_weight;
/// The table's gradient has dy's type.
PlanFunction plan_embedding_backward;
/// From f32, f16 or bf16. Values in another order than x's go by way of the workspace.
PlanFunction plan_quantize;
/// From f32, f16 or bf16; x in rows, or dense for blocks.
PlanFunction plan_amax, plan_quantize_blocks, plan_scale_from_amax;
/// Dense gradients, which may differ in type; the norm is f32, or f64. One launch serves all tensors.
PlanFunction plan_gradient_norm, plan_clip;
/// adamw, clip_adamw, lion, sgd. Masters and moments in f32, gradients and copies in f32, f16 or bf16; or all of them
/// in f64. Dense, in one order per parameter. The learning rate is f32, or f64 with the rest.
PlanFunction plan_adamw, plan_lion, plan_sgd;
/// Unscaled gradients f32, or f64 as the gradients.
PlanFunction plan_unscale, plan_update_scale;

/// cuDNN's ways to convolve, of a conv2d_batch_norm_forward: plans for x, filter, product; the same with the product's
/// channel sums, for two more tensors, of f32 [k]. Throw Unsupported where there is none.
[[nodiscard]] std::vector<Plan> convolution_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                  const CudaContext& context);
[[nodiscard]] std::vector<Plan> convolution_and_sums_plans(const OpCall& call, std::span<const TensorSpec> tensors,
                                                           const CudaContext& context);
/// plan_batch_norm_forward, of channel sums that are in its workspace when it starts: [2][batch_norm_sum_stride(c)] in
/// f32, of x's elements and of their squares.
PlanFunction plan_batch_norm_of_sums;

/// What moves x's elements to where y's layout has them, without addresses: for ops that move elements among other
/// things. Throws Unsupported for blocked layouts and for more than most_move_axes axes.
[[nodiscard]] MoveArgs move_of(const OpCall& call, const TensorSpec& x, const TensorSpec& y);
/// The plan of a move on the device.
[[nodiscard]] Plan plan_move(const MoveArgs& args, const OpCall& call, const CudaContext& context);

}  // namespace gpubench::cuda
