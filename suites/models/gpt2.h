// GPT-2 (Radford et al. 2019): pre-norm blocks of causal attention and a GELU feed-forward layer, learned positions,
// the embedding tied to the head.
#pragma once

#include "harness/core/workload.h"

namespace gpubench::suites {

/// One block: x + attention(ln1(x)), then + mlp(ln2(.)), to AdamW. Dims b, s, h, heads.
[[nodiscard]] Program gpt2_block_step(const Case& c, const Recipe& r);
/// The whole model. Dims b, s, layers, h, heads, vocab.
[[nodiscard]] Program gpt2_train_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
