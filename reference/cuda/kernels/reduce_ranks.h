// The reduction of virtual ranks' tensors, which all lie on this device.
#pragma once

#include "reference/cuda/kernels/launch.h"

namespace gpubench::cuda {

/// As many virtual ranks as one launch can name.
inline constexpr int most_virtual_ranks = 16;

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
  const void* from[most_virtual_ranks] = {};
  void* to[most_virtual_ranks] = {};
};

void launch_reduce_ranks(const ReduceRanksArgs& args, cudaStream_t stream);

}  // namespace gpubench::cuda
