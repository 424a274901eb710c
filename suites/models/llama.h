// Llama 3 (Grattafiori et al., arXiv 2407.21783): pre-norm blocks of grouped-query attention with rotary positions, and
// a SwiGLU feed-forward layer; no biases, a head of its own.
#pragma once

#include "harness/core/workload.h"

namespace gpubench::suites {

/// One block, to AdamW. Dims b, s, h, heads, kv (heads of keys and values), f (width of the feed-forward layer).
[[nodiscard]] Program llama_block_step(const Case& c, const Recipe& r);
/// The whole model. Dims as a block's, and layers, vocab.
[[nodiscard]] Program llama_train_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
