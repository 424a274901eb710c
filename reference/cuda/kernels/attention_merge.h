// Attention to two sets of keys, joined, as a launch. Meaning: reference/ops/attention.h.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// o1, o2 and o [batches, tokens, heads, width] in `type`; lse1, lse2 and lse [batches, heads, tokens] in f32, or f64
/// where the others are. All row-major.
struct AttentionMergeArgs {
  Element type = Element::f32;
  const void *o1 = nullptr, *o2 = nullptr;
  const void *lse1 = nullptr, *lse2 = nullptr;
  void *o = nullptr, *lse = nullptr;
  std::int64_t batches = 1, tokens = 1, heads = 1, width = 1;
};

void launch_attention_merge(const AttentionMergeArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
