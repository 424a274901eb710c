// What is done by token, as launches: look-up of rows and the scatter-add that is its gradient; routing to experts;
// tokens sorted by expert, moved there, and summed up again. Meaning: embedding.h, routing.h and token_groups.h of
// reference/ops.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// y[i] = table[tokens[i] - first], bit for bit, for elements of any size. A token outside the table gives bytes of 0,
/// and one outside the vocabulary bytes of 0xFF: NaN.
struct EmbeddingForwardArgs {
  int element_bytes = 4;
  const void* table = nullptr;
  const int* tokens = nullptr;
  void* y = nullptr;
  std::int64_t first = 0, vocabulary = 0, rows = 0, tokens_count = 0, columns = 0;
  std::int64_t table_stride = 0, y_stride = 0;
};

void launch_embedding_forward(const EmbeddingForwardArgs& args, cudaStream_t stream);

/// dtable[v] = sum of dy over the rows whose token is first + v, the same bits every time; 0 where there are none.
/// Tokens outside the table count nowhere, nor does padding_token (-1: none). Where it `adds`, dtable[v] is a summand
/// as well, and stays as it is where there are none. dy and dtable have one type.
struct EmbeddingBackwardArgs {
  Element data = Element::f32;
  bool adds = false;
  const void* dy = nullptr;
  const int* tokens = nullptr;
  void* dtable = nullptr;
  std::int64_t first = 0, padding_token = -1;
  std::int64_t rows = 0, tokens_count = 0, columns = 0;  ///< fewer than 2^31 tokens and rows of the table
  std::int64_t dy_stride = 0, dtable_stride = 0;
  int* scratch = nullptr;  ///< embedding_backward_scratch() integers
};

[[nodiscard]] std::int64_t embedding_backward_scratch(std::int64_t rows, std::int64_t tokens);

/// Seven launches: five that find each token's places; the sums of rare tokens; those of frequent ones.
void launch_embedding_backward(const EmbeddingBackwardArgs& args, int multiprocessors, cudaStream_t stream);

/// reference/ops/routing.h; all row-major. Weights and biases are f32, or f64 for f64 logits.
struct RoutingArgs {
  Element data = Element::f32;
  bool softmax = true, normalize = false;
  double scale = 1.0;
  std::int64_t tokens = 0;
  int experts = 0, k = 1;  ///< k <= max_routed
  const void *logits = nullptr, *bias = nullptr;
  int* indices = nullptr;  ///< written by the forward, read by the backward
  void* weights = nullptr;
  const void* dweights = nullptr;
  void* dlogits = nullptr;
};

inline constexpr int max_routed = 32;

void launch_routing_forward(const RoutingArgs& args, cudaStream_t stream);
void launch_routing_backward(const RoutingArgs& args, cudaStream_t stream);

// All row-major.

struct GroupTokensArgs {
  const int* indices = nullptr;
  int *sizes = nullptr, *order = nullptr, *places = nullptr;
  int pairs = 0, experts = 0, first = 0;
  int* scratch = nullptr;  ///< group_tokens_scratch() integers
};

[[nodiscard]] std::int64_t group_tokens_scratch(std::int64_t pairs, std::int64_t experts);

/// Three launches: counts of stretches of the pairs, where each stretch's begin, and the places.
void launch_group_tokens(const GroupTokensArgs& args, cudaStream_t stream);

/// t tokens of k pairs, n rows of h elements. Weights are f32, or f64 with f64 data; null: 1 each.
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
