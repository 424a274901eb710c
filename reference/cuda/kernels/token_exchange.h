// Rows of tokens between virtual ranks, whose tensors all lie on this device: where they go is read there, too.
#pragma once

#include "reference/cuda/kernels/launch.h"
#include "reference/cuda/kernels/reduce_ranks.h"

namespace gpubench::cuda {

/// As many counts as a block's memory holds: of each rank one more than there are experts.
inline constexpr int most_exchange_counts = 12000;

/// A member's part of dispatch_tokens, or of return_tokens: what it gets. Sizes below 0 are as 0, and rows beyond
/// `rows` are left out.
struct TokenExchangeArgs {
  bool dispatches = true;
  int ranks = 1;
  int member = 0;
  int experts = 1;  ///< of all ranks
  int rows = 0;     ///< that a rank has of its own
  std::int64_t row_bytes = 0;
  const void* from[most_virtual_ranks] = {};
  const int* sizes[most_virtual_ranks] = {};
  void* to = nullptr;
  int* own_sizes = nullptr;  ///< of a dispatch
};

void launch_token_exchange(const TokenExchangeArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
