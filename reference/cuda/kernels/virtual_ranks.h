// Launches of collectives of virtual ranks, whose tensors are all on this device: reductions and the exchange of
// tokens' rows.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// Limit of one launch.
inline constexpr int max_virtual_ranks = 16;

enum class RankReduction : std::uint8_t { sum, average, maximum };

/// to[t][i] = reduction over r of from[r][i], for i < count and every target t: in rank order, in f32 (f64 for f64),
/// rounded once.
/// An average divides the sum by the number of ranks; a maximum with a NaN is NaN. A target may be a source at the same
/// address.
struct ReduceRanksArgs {
  Element type = Element::f32;
  RankReduction reduction = RankReduction::sum;
  int ranks = 0;
  int targets = 0;
  std::int64_t count = 0;
  const void* from[max_virtual_ranks] = {};
  void* to[max_virtual_ranks] = {};
};

void launch_reduce_ranks(const ReduceRanksArgs& args, cudaStream_t stream);

/// Limit of a block's shared memory: experts + 1 counts per rank.
inline constexpr int max_exchange_counts = 12000;

/// Rows that a member receives by dispatch_tokens or return_tokens. Negative sizes count as 0; rows beyond `rows` are
/// dropped.
struct TokenExchangeArgs {
  bool dispatches = true;
  int ranks = 1;
  int member = 0;
  int experts = 1;  ///< on all ranks
  int rows = 0;     ///< per rank
  std::int64_t row_bytes = 0;
  const void* from[max_virtual_ranks] = {};
  const int* sizes[max_virtual_ranks] = {};
  void* to = nullptr;
  int* own_sizes = nullptr;  ///< dispatch only
};

void launch_token_exchange(const TokenExchangeArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
