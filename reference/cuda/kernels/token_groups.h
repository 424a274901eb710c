// Tokens sorted by expert, moved there, and summed up again, as launches. reference/ops/token_groups.h; all row-major.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

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
