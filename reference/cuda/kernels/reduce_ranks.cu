// A thread reduces one pack of 16 bytes at a time over all ranks.
#include "reference/cuda/kernels/virtual_ranks.h"

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;

template <RankReduction reduction, class T>
__device__ __forceinline__ T combined(T a, T x) {
  if constexpr (reduction == RankReduction::maximum) return x > a || x != x ? x : a;  // propagates NaN
  return a + x;
}

template <RankReduction reduction, class T, int N>
__global__ void __launch_bounds__(threads) reduce_ranks_kernel(ReduceRanksArgs args) {
  const std::int64_t packs = (args.count + N - 1) / N;
  for (std::int64_t pack = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; pack < packs;
       pack += static_cast<std::int64_t>(gridDim.x) * threads) {
    const std::int64_t first = pack * N;
    const std::int64_t count = args.count - first;
    Wide<T> total[N] = {};
    for (int rank = 0; rank < args.ranks; ++rank) {
      const Loaded<T, N> x = load_part<N>(static_cast<const T*>(args.from[rank]) + first, count, T{});
#pragma unroll
      for (int i = 0; i < N; ++i) total[i] = rank == 0 ? widen(x[i]) : combined<reduction>(total[i], widen(x[i]));
    }
    Pack<T, N> y;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if constexpr (reduction == RankReduction::average) total[i] /= static_cast<Wide<T>>(args.ranks);
      y.at[i] = narrow<T>(total[i]);
    }
    for (int target = 0; target < args.targets; ++target)
      store_part(static_cast<T*>(args.to[target]) + first, count, y);
  }
}

template <RankReduction reduction, class T>
void launch_typed(const ReduceRanksArgs& args, cudaStream_t stream) {
  constexpr int n = pack_elements<T>;
  bool wide = true;
  for (int rank = 0; rank < args.ranks; ++rank) wide = wide && packs_fit<T>(args.from[rank], 1, 0, n);
  for (int target = 0; target < args.targets; ++target) wide = wide && packs_fit<T>(args.to[target], 1, 0, n);
  const std::int64_t packs = wide ? (args.count + n - 1) / n : args.count;
  const Grid grid{blocks_for(packs, threads), threads};
  if (wide) {
    launch(reduce_ranks_kernel<reduction, T, n>, grid, stream, args);
  } else {
    launch(reduce_ranks_kernel<reduction, T, 1>, grid, stream, args);
  }
}

}  // namespace

void launch_reduce_ranks(const ReduceRanksArgs& args, cudaStream_t stream) {
  with_any_type(args.type, [&](auto type) {
    using T = typename decltype(type)::type;
    switch (args.reduction) {
      case RankReduction::sum: return launch_typed<RankReduction::sum, T>(args, stream);
      case RankReduction::average: return launch_typed<RankReduction::average, T>(args, stream);
      case RankReduction::maximum: return launch_typed<RankReduction::maximum, T>(args, stream);
    }
  });
}

}  // namespace gpubench::cuda
