// Llama 3 (Grattafiori et al., arXiv 2407.21783): pre-norm blocks of grouped-query attention with rotary positions, and
// a SwiGLU feed-forward layer; no biases, a head of its own.
#pragma once

#include <functional>
#include <string>

#include "suites/models/layers.h"

namespace gpubench::suites {

/// One block, to AdamW. Dims b, s, h, heads, kv (heads of keys and values), f (width of the feed-forward layer).
[[nodiscard]] Program llama_block_step(const Case& c, const Recipe& r);
/// The whole model. Dims as a block's, and layers, vocab.
[[nodiscard]] Program llama_train_step(const Case& c, const Recipe& r);

/// What a block has behind its second norm: x [b s, h] -> [b s, h].
using FeedForward = std::function<ValueId(Layers& layers, const std::string& prefix, ValueId x)>;
/// The same with another feed-forward layer.
[[nodiscard]] Program llama_block_step(const Case& c, const Recipe& r, const FeedForward& feed_forward);
[[nodiscard]] Program llama_train_step(const Case& c, const Recipe& r, const FeedForward& feed_forward);

}  // namespace gpubench::suites
