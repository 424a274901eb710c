// Transformer sizes and FLOP for predictions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gpubench {

/// A decoder of equal layers: attention, then a feed-forward network, dense or of experts.
struct TransformerModel {
  std::string_view name;
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t feed_forward = 0;  ///< width, of each expert
  bool gated = true;              ///< three matrices (SwiGLU), else two
  std::int64_t experts = 1, experts_per_token = 1;
  std::int64_t vocabulary = 0;
  bool tied = false;           ///< the output layer shares the embedding's weights
  std::int64_t positions = 0;  ///< learned positions; 0: rotary
  std::string_view source{};

  /// Of all experts of all layers; 0 for a dense model.
  [[nodiscard]] double expert_parameters() const;
  /// All parameters, without biases.
  [[nodiscard]] double parameters() const;
  /// FLOP of forward and backward, 2 per multiply-add: 6 per parameter that multiplies a token, plus
  /// 6 layers heads head_dim sequence for attention (Chowdhery et al., arXiv 2204.02311, appendix B, halved for causal
  /// attention). Excludes recomputation.
  [[nodiscard]] double flop_per_token(std::int64_t sequence) const;
};

[[nodiscard]] std::span<const TransformerModel> transformer_models();
/// Null for an unknown name.
[[nodiscard]] const TransformerModel* find_model(std::string_view name);

}  // namespace gpubench
