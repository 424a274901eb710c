// Collectives of virtual ranks, whose tensors all lie on this device, as launches: reductions, and the exchange of
// tokens' rows, whose destinations are read on the device.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// As many virtual ranks as one launch can name.
inline constexpr int max_virtual_ranks = 16;

enum class RankReduction : std::uint8_t { sum, average, maximum };

/// to[t][i] = reduction over r of from[r][i], for i < count and every target t: in the order of the ranks, in f32 (f64
/// for f64), rounded once. An average divides the sum by the number of ranks; a maximum with a NaN is NaN. A target may
/// be a source at the same address.
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

/// As many counts as a block's memory holds: of each rank one more than there are experts.
inline constexpr int max_exchange_counts = 12000;

/// A member's part of dispatch_tokens, or of return_tokens: what it gets. Sizes below 0 are as 0, and rows beyond
/// `rows` are left out.
struct TokenExchangeArgs {
  bool dispatches = true;
  int ranks = 1;
  int member = 0;
  int experts = 1;  ///< of all ranks
  int rows = 0;     ///< that a rank has of its own
  std::int64_t row_bytes = 0;
  const void* from[max_virtual_ranks] = {};
  const int* sizes[max_virtual_ranks] = {};
  void* to = nullptr;
  int* own_sizes = nullptr;  ///< of a dispatch
};

void launch_token_exchange(const TokenExchangeArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
