// The networks, one file each, as training steps of one block or of the whole model.
#pragma once

#include <functional>
#include <string>

#include "harness/core/workload.h"
#include "suites/models/layers.h"

namespace gpubench::suites {

// GPT-2 (Radford et al. 2019): pre-norm blocks of causal attention and a GELU feed-forward layer, learned positions,
// the embedding tied to the head.

/// One block: x + attention(ln1(x)), then + mlp(ln2(.)), with AdamW. Dims b, s, h, heads.
[[nodiscard]] Program gpt2_block_step(const Case& c, const Recipe& r);
/// The whole model. Dims b, s, layers, h, heads, vocab.
[[nodiscard]] Program gpt2_train_step(const Case& c, const Recipe& r);
[[nodiscard]] Point gpt2_point(std::int64_t b, std::int64_t s, std::int64_t layers, std::int64_t h, std::int64_t heads,
                               std::int64_t vocab, std::string label, Tier tier);

// Llama 3 (Grattafiori et al., arXiv 2407.21783): pre-norm blocks of grouped-query attention with rotary positions, and
// a SwiGLU feed-forward layer; no biases, an untied head.

/// One block, with AdamW. Dims b, s, h, heads, kv (heads of keys and values), f (width of the feed-forward layer).
[[nodiscard]] Program llama_block_step(const Case& c, const Recipe& r);
/// The whole model. Dims of a block, and layers, vocab.
[[nodiscard]] Program llama_train_step(const Case& c, const Recipe& r);

[[nodiscard]] Point llama_point(std::int64_t b, std::int64_t s, std::int64_t layers, std::int64_t h, std::int64_t heads,
                                std::int64_t kv, std::int64_t f, std::int64_t vocab, std::string label, Tier tier);

/// The layer after a block's second norm: x [b s, h] -> [b s, h].
using FeedForward = std::function<ValueId(Layers& layers, const std::string& prefix, ValueId x)>;
[[nodiscard]] Program llama_block_step(const Case& c, const Recipe& r, const FeedForward& feed_forward);
[[nodiscard]] Program llama_train_step(const Case& c, const Recipe& r, const FeedForward& feed_forward);

// Mixtures of experts: Mixtral 8x7B (Jiang et al., arXiv 2401.04088), Llama's blocks with experts as feed-forward
// layer; and the layer and block of DeepSeek-V3 (arXiv 2412.19437), which also have a shared expert.

/// One block, with AdamW. Dims b, s, h, heads, kv, f (width of an expert), experts, k (experts per token).
[[nodiscard]] Program mixtral_block_step(const Case& c, const Recipe& r);
/// The whole model, without a load-balancing loss. Dims of a block, and layers, vocab.
[[nodiscard]] Program mixtral_train_step(const Case& c, const Recipe& r);
/// y + experts(norm(y)), y = x + attention(norm(x)), with latent attention and AdamW. Dims of a layer, and heads,
/// q_rank and kv_rank (ranks of the latents), nope and rope (elements of a query or key without and with rotation), v
/// (elements of a value).
[[nodiscard]] Program deepseek_block_step(const Case& c, const Recipe& r);
/// x + experts(norm(x)), with AdamW: sigmoid routing with a bias, normalized and scaled by 2.5, and a shared expert.
/// Every token chooses among all experts (no node groups). Dims b, s, h, f, experts, k.
[[nodiscard]] Program deepseek_layer_step(const Case& c, const Recipe& r);

// BERT (Devlin et al., arXiv 1810.04805): post-norm blocks of bidirectional attention and a GELU feed-forward layer;
// trained on masked tokens only, without dropout.

/// Dims b, s, layers, h, heads, vocab. Predicts every seventh token (14%; the paper: 15% at random); the last product
/// has the embedding's weights.
[[nodiscard]] Program bert_train_step(const Case& c, const Recipe& r);

// The diffusion transformer (Peebles and Xie, arXiv 2212.09748): a transformer over patches of a noisy latent image,
// whose blocks are modulated by the time step and the class (adaLN-Zero).

/// One block, with AdamW. Dims n, s (tokens of an image), h, heads.
[[nodiscard]] Program dit_block_step(const Case& c, const Recipe& r);
/// The whole model. Predicts the noise and its variance, as many elements again, by squared error (the paper: a
/// variational bound for the variance). Dims n, image (height and width of the latent), channels, patch, layers, h,
/// heads, classes.
[[nodiscard]] Program dit_train_step(const Case& c, const Recipe& r);

// The vision transformer (Dosovitskiy et al., arXiv 2010.11929): a class token and an image's patches as tokens;
// pre-norm blocks of bidirectional attention.

/// Dims n, image (height and width), patch (height and width), layers, h, heads, classes. Without dropout.
[[nodiscard]] Program vit_train_step(const Case& c, const Recipe& r);

// ResNet v1.5 (He et al., arXiv 1512.03385, with the stride of a stage on its first 3x3 convolution, as torchvision and
// MLPerf have it), NHWC.

/// One bottleneck, with momentum SGD: n images of h x h pixels and c channels -> 4 width channels. Dims n, h, c, width,
/// stride. The shortcut is a convolution if the stride or the number of channels changes.
[[nodiscard]] Program resnet_block_step(const Case& c, const Recipe& r);
/// The whole network, with labels smoothed by 0.1 (He et al., arXiv 1812.01187, 5.2). Dims n, image (height and width),
/// width (channels of the first stage: 64), depth (14, 50, 101 or 152; 14: one bottleneck per stage), classes.
[[nodiscard]] Program resnet_train_step(const Case& c, const Recipe& r);

// VGG-16 (Simonyan and Zisserman, arXiv 1409.1556) with batch normalization: 3 x 3 convolutions and three large linear
// layers.

/// Dims n, image (height and width), width (channels of the first layers), classes. Without dropout.
[[nodiscard]] Program vgg_train_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
