// Launches on tokens: embedding and its gradient, expert routing, sorting by expert, and moves to and from experts.
// Meaning: embedding.h, routing.h and token_groups.h in reference/ops.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// y[i] = table[tokens[i] - first], bit-exact, for any element size. A token outside the table gives zero bytes; one
/// outside the vocabulary gives bytes 0xFF: NaN.
struct EmbeddingForwardArgs {
  int element_bytes = 4;
  const void* table = nullptr;
  const int* tokens = nullptr;
  void* y = nullptr;
  std::int64_t first = 0, vocabulary = 0, rows = 0, tokens_count = 0, columns = 0;
  std::int64_t table_stride = 0, y_stride = 0;
};

void launch_embedding_forward(const EmbeddingForwardArgs& args, cudaStream_t stream);

/// dtable[v] = sum of dy over rows whose token is first + v, or 0; deterministic.
/// Tokens outside the table and padding_token (-1: none) are skipped. With `adds`, the sum is added to dtable[v]; rows
/// without tokens do not change. dy and dtable have one type.
struct EmbeddingBackwardArgs {
  Element data = Element::f32;
  bool adds = false;
  const void* dy = nullptr;
  const int* tokens = nullptr;
  void* dtable = nullptr;
  std::int64_t first = 0, padding_token = -1;
  std::int64_t rows = 0, tokens_count = 0, columns = 0;  ///< tokens and table rows: fewer than 2^31
  std::int64_t dy_stride = 0, dtable_stride = 0;
  int* scratch = nullptr;  ///< embedding_backward_scratch() integers
};

[[nodiscard]] std::int64_t embedding_backward_scratch(std::int64_t rows, std::int64_t tokens);

/// Seven launches: five find each token's places, then sums of rare tokens and of frequent tokens.
void launch_embedding_backward(const EmbeddingBackwardArgs& args, int multiprocessors, cudaStream_t stream);

/// reference/ops/routing.h; row-major. Weights and biases are f32 (f64 for f64 logits).
struct RoutingArgs {
  Element data = Element::f32;
  bool softmax = true, normalize = false;
  double scale = 1.0;
  std::int64_t tokens = 0;
  int experts = 0, k = 1;  ///< k <= max_routed
  const void *logits = nullptr, *bias = nullptr;
  int* indices = nullptr;  ///< output of the forward, input of the backward
  void* weights = nullptr;
  const void* dweights = nullptr;
  void* dlogits = nullptr;
};

inline constexpr int max_routed = 32;

void launch_routing_forward(const RoutingArgs& args, cudaStream_t stream);
void launch_routing_backward(const RoutingArgs& args, cudaStream_t stream);

// Row-major.

struct GroupTokensArgs {
  const int* indices = nullptr;
  int *sizes = nullptr, *order = nullptr, *places = nullptr;
  int pairs = 0, experts = 0, first = 0;
  int* scratch = nullptr;  ///< group_tokens_scratch() integers
};

[[nodiscard]] std::int64_t group_tokens_scratch(std::int64_t pairs, std::int64_t experts);

/// Three launches: counts per stretch of pairs, start of each stretch, places.
void launch_group_tokens(const GroupTokensArgs& args, cudaStream_t stream);

/// t tokens of k pairs, n rows of h elements. Weights are f32 (f64 for f64 data); null: 1.
struct TokenRowsArgs {
  Element data = Element::f32;
  std::int64_t t = 0, k = 1, n = 0, h = 0;
  const void *x = nullptr, *dy = nullptr, *weights = nullptr;
  const int* pairs = nullptr;  ///< order [n], or places [t, k]
  void* to = nullptr;
};

void launch_permute_tokens(const TokenRowsArgs& args, cudaStream_t stream);
void launch_unpermute_tokens(const TokenRowsArgs& args, cudaStream_t stream);
void launch_unpermute_backward_weights(const TokenRowsArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
