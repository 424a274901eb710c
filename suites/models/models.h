// The networks, one file each, as training steps of one block or of the whole model.
#pragma once

#include <functional>
#include <string>

#include "harness/core/workload.h"
#include "suites/models/layers.h"

namespace gpubench::suites {

// GPT-2 (Radford et al. 2019): pre-norm blocks of causal attention and a GELU feed-forward layer, learned positions,
// the embedding tied to the head.

/// One block: x + attention(ln1(x)), then + mlp(ln2(.)), to AdamW. Dims b, s, h, heads.
[[nodiscard]] Program gpt2_block_step(const Case& c, const Recipe& r);
/// The whole model. Dims b, s, layers, h, heads, vocab.
[[nodiscard]] Program gpt2_train_step(const Case& c, const Recipe& r);
/// A point of its grids, also for other models with these dims.
[[nodiscard]] Point gpt2_point(std::int64_t b, std::int64_t s, std::int64_t layers, std::int64_t h, std::int64_t heads,
                               std::int64_t vocab, std::string label, Tier tier);

// Llama 3 (Grattafiori et al., arXiv 2407.21783): pre-norm blocks of grouped-query attention with rotary positions, and
// a SwiGLU feed-forward layer; no biases, a head of its own.

/// One block, to AdamW. Dims b, s, h, heads, kv (heads of keys and values), f (width of the feed-forward layer).
[[nodiscard]] Program llama_block_step(const Case& c, const Recipe& r);
/// The whole model. Dims as a block's, and layers, vocab.
[[nodiscard]] Program llama_train_step(const Case& c, const Recipe& r);

[[nodiscard]] Point llama_point(std::int64_t b, std::int64_t s, std::int64_t layers, std::int64_t h, std::int64_t heads,
                                std::int64_t kv, std::int64_t f, std::int64_t vocab, std::string label, Tier tier);

/// What a block has behind its second norm: x [b s, h] -> [b s, h].
using FeedForward = std::function<ValueId(Layers& layers, const std::string& prefix, ValueId x)>;
/// The same with another feed-forward layer.
[[nodiscard]] Program llama_block_step(const Case& c, const Recipe& r, const FeedForward& feed_forward);
[[nodiscard]] Program llama_train_step(const Case& c, const Recipe& r, const FeedForward& feed_forward);

// Mixtures of experts: Mixtral 8x7B (Jiang et al., arXiv 2401.04088), whose blocks are Llama's with experts in place of
// the feed-forward layer, and the layer and block of DeepSeek-V3 (arXiv 2412.19437), which have a shared expert as
// well.

/// One block, to AdamW. Dims b, s, h, heads, kv, f (width of an expert), experts, k (of a token).
[[nodiscard]] Program mixtral_block_step(const Case& c, const Recipe& r);
/// The whole model, without a loss that balances the experts. Dims as a block's, and layers, vocab.
[[nodiscard]] Program mixtral_train_step(const Case& c, const Recipe& r);
/// y + experts(norm(y)), y = x + attention(norm(x)), to AdamW, with latent attention. Dims b and s, those of a layer,
/// and of the attention: heads, q_rank and kv_rank (of the latents), nope and rope (elements of a query or key without
/// and with a rotation), v (of a value).
[[nodiscard]] Program deepseek_block_step(const Case& c, const Recipe& r);
/// x + experts(norm(x)), to AdamW: sigmoid routing with a bias, normalized and scaled by 2.5, and a shared expert. All
/// experts are candidates for every token (no groups of nodes). Dims b, s, h, f, experts, k.
[[nodiscard]] Program deepseek_layer_step(const Case& c, const Recipe& r);

// BERT (Devlin et al., arXiv 1810.04805): post-norm blocks of attention in both directions and a GELU feed-forward
// layer; trained on masked tokens only, without dropout.

/// Dims b, s, layers, h, heads, vocab. Every seventh token is to be predicted (14 %; in the paper 15 % at random), by a
/// head whose last product has the embedding's weights.
[[nodiscard]] Program bert_train_step(const Case& c, const Recipe& r);

// The diffusion transformer (Peebles and Xie, arXiv 2212.09748): a transformer over patches of a noisy latent image,
// whose blocks are modulated by the time step and the class (adaLN-Zero).

/// One block, to AdamW. Dims n, s (tokens of an image), h, heads.
[[nodiscard]] Program dit_block_step(const Case& c, const Recipe& r);
/// The whole model, trained to predict the noise and as many elements that stand for its variance, by their squared
/// error (the paper has a variational bound for the latter). Dims n, image (height and width of the latent), channels,
/// patch, layers, h, heads, classes.
[[nodiscard]] Program dit_train_step(const Case& c, const Recipe& r);

// The vision transformer (Dosovitskiy et al., arXiv 2010.11929): patches of an image as tokens, behind one that stands
// for the class; pre-norm blocks of attention in both directions.

/// Dims n, image (its height and width), patch (of a patch), layers, h, heads, classes. Without dropout.
[[nodiscard]] Program vit_train_step(const Case& c, const Recipe& r);

// ResNet v1.5 (He et al., arXiv 1512.03385, with the stride of a stage on its first 3x3 convolution, as torchvision and
// MLPerf have it), NHWC.

/// One bottleneck, to SGD with momentum: n images of h x h pixels and c channels -> 4 width channels. Dims n, h, c,
/// width, stride. Where the stride or the channels ask for it, the shortcut is a convolution.
[[nodiscard]] Program resnet_block_step(const Case& c, const Recipe& r);
/// The whole network, trained with labels smoothed by 0.1 (He et al., arXiv 1812.01187, 5.2). Dims n, image (its height
/// and width), width (channels of the first stage: 64), depth (14, 50, 101 or 152 layers; 14: one bottleneck in each
/// stage), classes.
[[nodiscard]] Program resnet_train_step(const Case& c, const Recipe& r);

// VGG-16 (Simonyan and Zisserman, arXiv 1409.1556) with batch normalization, as it is trained since: nothing but
// convolutions of 3 x 3 and three large linear layers.

/// Dims n, image (its height and width), width (of the first layers), classes. Without dropout.
[[nodiscard]] Program vgg_train_step(const Case& c, const Recipe& r);

}  // namespace gpubench::suites
