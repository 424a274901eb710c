// Pairs are placed without atomics, so that they stay in order. A block per stretch of pairs counts those of each
// expert; a pair's place is its stretch's start plus the number before it in the stretch.
// Rows move 16 bytes at a time if everything is aligned, else by elements.
#include "reference/cuda/kernels/tokens.h"

#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int stretch = threads;
constexpr int scan_threads = 1024;

struct Stretch {
  Shared<int> experts[stretch];
};

/// The expert of each pair of a stretch, relative to the first; -1 for those of other ranks.
__device__ __forceinline__ int read_stretch(const GroupTokensArgs& args, Stretch& shared) {
  const std::int64_t pair = static_cast<std::int64_t>(blockIdx.x) * stretch + threadIdx.x;
  int expert = -1;
  if (pair < args.pairs) expert = load(args.indices + pair) - args.first;
  if (expert < 0 || expert >= args.experts) expert = -1;
  shared.experts[threadIdx.x] = expert;
  __syncthreads();
  return expert;
}

__global__ void __launch_bounds__(threads) count_pairs_kernel(GroupTokensArgs args) {
  auto& shared = shared_storage<Stretch>();
  (void)read_stretch(args, shared);
  for (int expert = static_cast<int>(threadIdx.x); expert < args.experts; expert += threads) {
    int count = 0;
    for (int i = 0; i < stretch; ++i) count += shared.experts[i] == expert ? 1 : 0;
    store(args.scratch + static_cast<std::int64_t>(expert) * gridDim.x + blockIdx.x, count);
  }
}

struct ScanArgs {
  int* counts;
  std::int64_t count;
};

/// One block: replaces counts by exclusive prefix sums, followed by the total.
__global__ void __launch_bounds__(scan_threads) scan_counts_kernel(ScanArgs args) {
  auto& warps = shared_storage<PerWarp<int>>();
  const std::int64_t each = (args.count + scan_threads - 1) / scan_threads;
  const std::int64_t begin = threadIdx.x * each;
  const std::int64_t end = begin + each < args.count ? begin + each : args.count;
  int own = 0;
  for (std::int64_t i = begin; i < end; ++i) own += load(args.counts + i);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes, warp = static_cast<int>(threadIdx.x) / warp_lanes;
  int up_to_here = own;
#pragma unroll
  for (int offset = 1; offset < warp_lanes; offset *= 2) {
    const int below = __shfl_up_sync(whole_warp, up_to_here, offset);
    if (lane >= offset) up_to_here += below;
  }
  if (lane == warp_lanes - 1) warps.at[warp] = up_to_here;
  __syncthreads();
  int next = up_to_here - own;
  for (int i = 0; i < warp; ++i) next += warps.at[i];
  for (std::int64_t i = begin; i < end; ++i) {
    const int count = load(args.counts + i);
    store(args.counts + i, next);
    next += count;
  }
  if (threadIdx.x == scan_threads - 1) store(args.counts + args.count, next);
}

__global__ void __launch_bounds__(threads) place_pairs_kernel(GroupTokensArgs args) {
  auto& shared = shared_storage<Stretch>();
  const int expert = read_stretch(args, shared);
  const auto begin_of = [&](std::int64_t group, std::int64_t block) {
    return load(args.scratch + group * gridDim.x + block);
  };
  const int pair = static_cast<int>(blockIdx.x) * stretch + static_cast<int>(threadIdx.x);
  if (pair < args.pairs) {
    int place = -1;
    if (expert >= 0) {
      place = begin_of(expert, blockIdx.x);
      for (int i = 0; i < static_cast<int>(threadIdx.x); ++i) place += shared.experts[i] == expert ? 1 : 0;
      store(args.order + place, pair);
    }
    store(args.places + pair, place);
    if (pair >= begin_of(args.experts, 0)) store(args.order + pair, -1);
  }
  for (int group = pair; group < args.experts; group += static_cast<int>(gridDim.x) * stretch)
    store(args.sizes + group, begin_of(group + 1, 0) - begin_of(group, 0));
}

constexpr int in_flight = 4;

template <class T, int N>
__global__ void __launch_bounds__(threads) permute_kernel(TokenRowsArgs args) {
  using W = Wide<T>;
  const std::int64_t per_row = args.h / N, packs = per_row * args.n;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + threadIdx.x; first < packs;
       first += static_cast<std::int64_t>(gridDim.x) * threads * in_flight) {
    Loaded<T, N> held[in_flight];
    int pairs[in_flight];
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      const std::int64_t at = first + j * threads;
      pairs[j] = at < packs ? load(args.pairs + place_of(at, per_row, args.n, N).row) : -1;
    }
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      const PackPlace place = place_of(first + j * threads, per_row, args.n, N);
      if (pairs[j] >= 0 && pairs[j] < args.n) {
        held[j] = load_pack<N>(static_cast<const T*>(args.x) + pairs[j] / args.k * args.h + place.column);
      } else {
        held[j] = as_loaded(Pack<T, N>{});
        pairs[j] = -1;
      }
    }
#pragma unroll
    for (int j = 0; j < in_flight; ++j) {
      const std::int64_t at = first + j * threads;
      if (at >= packs) continue;
      const PackPlace place = place_of(at, per_row, args.n, N);
      Pack<T, N> pack = held[j].unpacked();
      if (args.weights != nullptr && pairs[j] >= 0) {
        const W weight = load(static_cast<const W*>(args.weights) + pairs[j]);
#pragma unroll
        for (int i = 0; i < N; ++i) pack.at[i] = narrow<T>(widen(held[j][i]) * weight);
      }
      store_pack(static_cast<T*>(args.to) + place.row * args.h + place.column, pack);
    }
  }
}

template <class T, int N>
__global__ void __launch_bounds__(threads) unpermute_kernel(TokenRowsArgs args) {
  using W = Wide<T>;
  const std::int64_t per_row = args.h / N, packs = per_row * args.t;
  for (std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; at < packs;
       at += static_cast<std::int64_t>(gridDim.x) * threads) {
    const PackPlace place = place_of(at, per_row, args.t, N);
    Pack<W, N> sum{};
    for (std::int64_t first = 0; first < args.k; first += in_flight) {
      Loaded<T, N> rows[in_flight];
      W weights[in_flight];
      int places[in_flight];
#pragma unroll
      for (int j = 0; j < in_flight; ++j) {
        const std::int64_t pair = place.row * args.k + first + j;
        const bool there = first + j < args.k;
        places[j] = there ? load(args.pairs + pair) : -1;
        weights[j] = there && args.weights != nullptr ? load(static_cast<const W*>(args.weights) + pair) : W(1);
        if (places[j] >= args.n) places[j] = -1;
      }
      // Without a row, loads and ignores the first: a branch would wait for the loads before it.
#pragma unroll
      for (int j = 0; j < in_flight; ++j)
        rows[j] = load_pack<N>(static_cast<const T*>(args.x) + (places[j] < 0 ? 0 : places[j]) * args.h + place.column);
#pragma unroll
      for (int j = 0; j < in_flight; ++j) {
        if (places[j] < 0) continue;
#pragma unroll
        for (int i = 0; i < N; ++i) sum.at[i] += widen(rows[j][i]) * weights[j];
      }
    }
    Pack<T, N> y;
#pragma unroll
    for (int i = 0; i < N; ++i) y.at[i] = narrow<T>(sum.at[i]);
    store_pack(static_cast<T*>(args.to) + place.row * args.h + place.column, y);
  }
}

template <class T, int N>
__global__ void __launch_bounds__(threads) pair_dot_kernel(TokenRowsArgs args) {
  using W = Wide<T>;
  constexpr int turns = in_flight / 2;
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::int64_t pairs = args.t * args.k, packs = args.h / N;
  for (std::int64_t pair = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / warp_lanes; pair < pairs;
       pair += static_cast<std::int64_t>(gridDim.x) * (threads / warp_lanes)) {
    const int row = load(args.pairs + pair);
    W sum = 0;
    if (row >= 0 && row < args.n) {
      const T* x = static_cast<const T*>(args.x) + row * args.h;
      const T* dy = static_cast<const T*>(args.dy) + pair / args.k * args.h;
      for (std::int64_t first = lane; first < packs; first += warp_lanes * turns) {
        Loaded<T, N> left[turns], right[turns];
#pragma unroll
        for (int j = 0; j < turns; ++j) {
          const std::int64_t column = (first + j * warp_lanes) * N;
          const std::int64_t there = column < args.h ? N : 0;
          left[j] = load_part<N>(x + column, there, narrow<T>(W(0)));
          right[j] = load_part<N>(dy + column, there, narrow<T>(W(0)));
        }
#pragma unroll
        for (int j = 0; j < turns; ++j) {
#pragma unroll
          for (int i = 0; i < N; ++i) sum += widen(left[j][i]) * widen(right[j][i]);
        }
      }
    }
    sum = warp_sum(sum);
    if (lane == 0) store(static_cast<W*>(args.to) + pair, sum);
  }
}

/// Calls launch_with(type, constant: elements per pack that rows consist of).
template <class LaunchWith>
void with_packs(const TokenRowsArgs& args, const LaunchWith& launch_with) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int n = pack_elements<T>;
    const auto fits = [&](const void* data) { return data == nullptr || packs_fit<T>(data, 2, args.h, n); };
    if (fits(args.x) && fits(args.dy) && fits(args.to)) {
      launch_with(type, std::integral_constant<int, n>{});
    } else {
      launch_with(type, std::integral_constant<int, 1>{});
    }
  });
}

int stretches(std::int64_t pairs) { return static_cast<int>((pairs + stretch - 1) / stretch); }

}  // namespace

std::int64_t group_tokens_scratch(std::int64_t pairs, std::int64_t experts) { return experts * stretches(pairs) + 1; }

void launch_group_tokens(const GroupTokensArgs& args, cudaStream_t stream) {
  const Grid grid{stretches(args.pairs), threads};
  launch(count_pairs_kernel, grid, stream, args);
  const ScanArgs scan{args.scratch, group_tokens_scratch(args.pairs, args.experts) - 1};
  launch(scan_counts_kernel, Grid{1, scan_threads}, stream, scan);
  launch(place_pairs_kernel, grid, stream, args);
}

void launch_permute_tokens(const TokenRowsArgs& args, cudaStream_t stream) {
  with_packs(args, [&](auto type, auto n) {
    using T = typename decltype(type)::type;
    launch(permute_kernel<T, n>, Grid{blocks_for(args.n * args.h / n, threads * in_flight), threads}, stream, args);
  });
}

void launch_unpermute_tokens(const TokenRowsArgs& args, cudaStream_t stream) {
  with_packs(args, [&](auto type, auto n) {
    using T = typename decltype(type)::type;
    launch(unpermute_kernel<T, n>, Grid{blocks_for(args.t * args.h / n, threads), threads}, stream, args);
  });
}

void launch_unpermute_backward_weights(const TokenRowsArgs& args, cudaStream_t stream) {
  // The sum is f32, whatever the alignment of `to`.
  TokenRowsArgs rows = args;
  rows.to = nullptr;
  with_packs(rows, [&](auto type, auto n) {
    using T = typename decltype(type)::type;
    launch(pair_dot_kernel<T, n>, Grid{blocks_for(args.t * args.k, threads / warp_lanes), threads}, stream, args);
  });
}

}  // namespace gpubench::cuda
