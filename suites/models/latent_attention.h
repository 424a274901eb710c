// Multi-head latent attention of DeepSeek-V2 and -V3 (arXiv 2405.04434, 2.1; arXiv 2412.19437, 2.1.1): queries, keys
// and values are made from latents of low rank, and positions are in further elements of queries and keys.
#pragma once

#include <string>

#include "suites/models/layers.h"

namespace gpubench::suites {

/// Dims heads, q_rank, kv_rank (of the latents), nope, rope (elements of a query or key without and with a rotation), v
/// (of a value), and b, s.
struct LatentAttention {
  Heads heads;
  std::int64_t q_rank = 0, kv_rank = 0, nope = 0, rope = 0, v = 0;
  explicit LatentAttention(const Case& c);
};

/// x [b s, h] -> [b s, h], causal. All heads share one rotated key; `tables`: of `rope` elements.
ValueId latent_attention(Layers& layers, const std::string& prefix, ValueId x, const LatentAttention& sizes,
                         const RotaryTables& tables);

}  // namespace gpubench::suites
