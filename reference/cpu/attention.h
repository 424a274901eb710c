// Planning of attention (reference/ops/attention.h), forward and backward, in the manner of FlashAttention: blocks of
// scores that live in cache, never the whole matrix. Dao et al., arXiv 2205.14135.
//
// Scores, log-sum-exp and all sums are f32; probabilities and score gradients are rounded to bf16 only as operands of
// the products that follow. Keys beyond the causal range are cut off by selection, so that nothing in their scores
// matters.
#pragma once

#include <span>

#include "reference/cpu/kernel.h"

namespace gpubench::cpu {

/// f32 or bf16; q, k, v, o and their gradients with a contiguous last axis, lse f32 and dense. scale > 0.
[[nodiscard]] Plan plan_attention_forward(const OpCall& call, std::span<const TensorSpec> tensors,
                                          const CpuContext& context);
[[nodiscard]] Plan plan_attention_backward(const OpCall& call, std::span<const TensorSpec> tensors,
                                           const CpuContext& context);

}  // namespace gpubench::cpu
