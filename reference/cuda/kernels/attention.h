// Launches of tiled attention (forward and backward), the merge of attention over two key sets, and rotary embedding.
// Tensors: reference/ops/attention.h and reference/ops/rotary.h.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// q [b, s, hq, d], k [b, t, hkv, d], v [b, t, hkv, dv]; o and do have v's head size dv, which may differ from d. Both
/// are at most max_attention_head. Sums and log-sum-exp are f32. The last axis is contiguous.
struct AttentionArgs {
  Element data = Element::f32;
  bool causal = false;
  std::int64_t b = 0, s = 0, t = 0, hq = 0, hkv = 0, d = 0, dv = 0;
  std::int64_t window = 0;      ///< 0: none
  std::int64_t boundaries = 0;  ///< of documents, per sequence
  float scale = 1.0F, softcap = 0.0F;
  HeadStrides q_at, k_at, v_at, o_at, d_o_at, dq_at, dk_at, dv_at;
  const void *q = nullptr, *k = nullptr, *v = nullptr, *d_o = nullptr;
  const float* sinks = nullptr;    ///< [hq], or none
  const int* documents = nullptr;  ///< [b, boundaries]
  void* o = nullptr;               ///< output of the forward, input of the backward; likewise lse
  float* lse = nullptr;            ///< [b, hq, s]
  void *dq = nullptr, *dk = nullptr, *d_v = nullptr;
  float* d_sinks = nullptr;
  float* delta = nullptr;  ///< [b, hq, s], scratch: sum of do o
};

inline constexpr int max_attention_head = 256;

void launch_attention_forward(const AttentionArgs& args, cudaStream_t stream);
/// Four launches: delta, then the gradients of sinks, of q, and of k and v. No atomic additions.
void launch_attention_backward(const AttentionArgs& args, cudaStream_t stream);

/// o1, o2 and o [batches, tokens, heads, width] in `type`; lse1, lse2 and lse [batches, heads, tokens] in f32 (f64 for
/// f64). All row-major.
struct AttentionMergeArgs {
  Element type = Element::f32;
  const void *o1 = nullptr, *o2 = nullptr;
  const void *lse1 = nullptr, *lse2 = nullptr;
  void *o = nullptr, *lse = nullptr;
  std::int64_t batches = 1, tokens = 1, heads = 1, width = 1;
};

void launch_attention_merge(const AttentionMergeArgs& args, cudaStream_t stream);

/// x and y in `type`, possibly the same memory; tables [tokens, pairs] in f32 (f64 for f64).
struct RotaryArgs {
  Element type = Element::f32;
  bool interleaved = false;
  bool inverse = false;
  const void* x = nullptr;
  void* y = nullptr;
  const void* cos = nullptr;
  const void* sin = nullptr;
  std::int64_t sequences = 1, tokens = 0, heads = 0;
  std::int64_t pairs = 0;  ///< per head
  HeadStrides x_strides, y_strides;
};

void launch_rotary(const RotaryArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
