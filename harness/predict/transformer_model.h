// Transformers as far as their work and size go: what predict computes with.
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
  std::int64_t feed_forward = 0;  ///< width; of each expert, where there are several
  bool gated = true;              ///< three matrices (SwiGLU), else two
  std::int64_t experts = 1, experts_per_token = 1;
  std::int64_t vocabulary = 0;
  bool tied = false;           ///< the embedding is the last layer's weight too
  std::int64_t positions = 0;  ///< learned ones; 0: rotary
  std::string_view source{};

  /// Of all layers' experts together; 0 for a dense model.
  [[nodiscard]] double expert_parameters() const;
  /// All of them; biases are left out.
  [[nodiscard]] double parameters() const;
  /// Floating-point operations of forward and backward, 2 per multiply-add: 6 for each parameter that a token is
  /// multiplied with, and 6 layers heads head_dim for each of `sequence` positions (causal: half of all pairs).
  /// Chowdhery et al., arXiv 2204.02311, appendix B, with causal attention. What is recomputed does not count.
  [[nodiscard]] double flop_per_token(std::int64_t sequence) const;
};

/// Those that are known by name.
[[nodiscard]] std::span<const TransformerModel> transformer_models();
/// Null where there is none of this name.
[[nodiscard]] const TransformerModel* find_model(std::string_view name);

}  // namespace gpubench
