// Look-up of rows by token, and the scatter-add that is its gradient, as launches.
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

}  // namespace gpubench::cuda
