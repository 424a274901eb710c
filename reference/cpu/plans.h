// Every function that plans an op on the CPU. reference/ops says what the ops mean; the comments here say what this
// backend supports of each. All throw Unsupported, with the library's words where the library lacks something.
#pragma once

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// `tensors`: the specs of the call's inputs, then its outputs.
using PlanFunction = Plan(const OpCall& call, std::span<const TensorSpec> tensors, const CpuContext& context);

// On oneDNN, with f32 sums.
/// f32 and bf16. GELU epilogues, of which training needs both sides, are a pass of our own behind the product.
PlanFunction plan_gemm;
/// NHWC, f32 and bf16; dfilter may be f32 where x and dy are bf16. Filters are brought into the library's own layout
/// inside the work where that pays.
PlanFunction plan_conv2d_forward, plan_conv2d_backward_data, plan_conv2d_backward_filter;
/// oneDNN's reorder where both layouts are plain strides and it knows the type, else our own for any two layouts.
PlanFunction plan_transpose, plan_reorder;

// Own kernels, f32 or bf16 each unless stated otherwise; rows may have a stride.
/// Blocks of scores that live in cache, never the whole matrix (Dao et al., arXiv 2205.14135). Scores, log-sum-exp and
/// all sums are f32; probabilities and score gradients are rounded to bf16 only as operands of the products that
/// follow. q, k, v, o and their gradients have a contiguous last axis, lse is f32 and dense; scale > 0.
PlanFunction plan_attention_forward, plan_attention_backward;
/// Any type; dense in one order, or rows with a stride.
PlanFunction plan_copy;
/// Every op of reference/ops/pointwise.h. Dense in one order, or rows with a stride.
PlanFunction plan_pointwise;
PlanFunction plan_column_sum;
/// Statistics f32.
PlanFunction plan_norm_forward, plan_norm_backward;
/// x, r, sum and y alike, all row-major.
PlanFunction plan_residual_norm_forward;
/// Any strides between heads, tokens and sequences.
PlanFunction plan_rotary;
/// A label outside the classes gives a loss of NaN, and no one-hot term; in both at once a row of NaN.
PlanFunction plan_cross_entropy_forward, plan_cross_entropy_backward, plan_cross_entropy_forward_backward;
/// The table of any type. A token outside the table gives a row of NaN (all bits set).
PlanFunction plan_embedding_forward;
/// Summed in f32. A token outside the table is ignored.
PlanFunction plan_embedding_backward;
/// Gradients dense in any order.
PlanFunction plan_gradient_norm, plan_clip;
/// adamw, and clip_adamw. Weights and moments f32.
PlanFunction plan_adamw;

/// min(1, limit / (norm + 1e-6)), rounded once; a NaN norm stays NaN.
[[nodiscard]] float clip_factor(float norm, double limit);

}  // namespace gpubench::cpu
