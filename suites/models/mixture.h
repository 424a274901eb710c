// Mixtures of experts: Mixtral 8x7B (Jiang et al., arXiv 2401.04088), whose blocks are Llama's with experts in place of
// the feed-forward layer, and the layer and block of DeepSeek-V3 (arXiv 2412.19437), which have a shared expert as
// well.
#pragma once

#include "harness/core/workload.h"

namespace gpubench::suites {

/// One block, to AdamW. Dims b, s, h, heads, kv, f (width of an expert), experts, k (of a token).
[[nodiscard]] Program mixtral_block_step(const Case& c, const Recipe& r);
/// The whole model, without a loss that balances the experts. Dims as a block's, and layers, vocab.
[[nodiscard]] Program mixtral_train_step(const Case& c, const Recipe& r);
/// y + experts(norm(y)), y = x + attention(norm(x)), to AdamW: latent attention (latent_attention.h, whose dims these
/// are too), and experts as those of a layer.
[[nodiscard]] Program deepseek_block_step(const Case& c, const Recipe& r);
/// x + experts(norm(x)), to AdamW: sigmoid routing with a bias, normalized and scaled by 2.5, and a shared expert. All
/// experts are candidates for every token (no groups of nodes). Dims b, s, h, f, experts, k.
[[nodiscard]] Program deepseek_layer_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
