// The gradient visits each row of the table once. Atomics make a linked list of the places where each token occurs, in
// any order; whoever sums a row puts its places in order first, so that the sum is always the same. A token that occurs
// more often than a warp has lanes goes to the last launch, whose blocks read all tokens in order.
#include "reference/cuda/kernels/embedding.h"
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int none = -1;

/// heads [vocabulary], next [tokens], then the frequent tokens [tokens / 32] and how many they are.
struct Lists {
  int* heads;
  int* next;
  int* frequent;
  int* frequent_count;
};

__device__ __forceinline__ Lists lists_of(const EmbeddingBackwardArgs& args) {
  int* next = args.heads + args.vocabulary;
  int* frequent = next + args.tokens_count;
  return {args.heads, next, frequent, frequent + args.tokens_count / warp_lanes};
}

__global__ void __launch_bounds__(threads) empty_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < args.vocabulary;
       i += static_cast<std::int64_t>(gridDim.x) * threads) {
    store(lists.heads + i, none);
    if (i == 0) store(lists.frequent_count, 0);
  }
}

__global__ void __launch_bounds__(threads) link_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < args.tokens_count;
       i += static_cast<std::int64_t>(gridDim.x) * threads) {
    const int token = load(args.tokens + i);
    if (token < 0 || token >= args.vocabulary) continue;
    store(lists.next + i, atomic_exchange(lists.heads + token, static_cast<int>(i)));
  }
}

/// The places of a token in lanes 0, 1, ..., in order, and how many; more than 32 are counted as 33.
struct Places {
  int place;  // of this lane
  int count;
};

__device__ __forceinline__ Places places_of(const Lists& lists, std::int64_t token) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  int at = load(lists.heads + token);
  int unsorted = 0x7FFFFFFF;
  int count = 0;
  while (at != none && count <= warp_lanes) {
    if (lane == count) unsorted = at;
    ++count;
    at = load(lists.next + at);
  }
  if (count > warp_lanes) return {none, count};
  // Places are distinct: the one with k smaller ones belongs into lane k.
  int smaller = 0;
  for (int i = 0; i < count; ++i) smaller += __shfl_sync(whole_warp, unsorted, i) < unsorted ? 1 : 0;
  int place = none;
  for (int i = 0; i < count; ++i) {
    const int rank = __shfl_sync(whole_warp, smaller, i);
    const int value = __shfl_sync(whole_warp, unsorted, i);
    if (rank == lane) place = value;
  }
  return {place, count};
}

template <class T, int N>
__device__ __forceinline__ void add_to(Pack<Wide<T>, N>& sum, const Loaded<T, N>& pack) {
#pragma unroll
  for (int i = 0; i < N; ++i) sum.at[i] += widen(pack[i]);
}

template <class T, int N>
__device__ __forceinline__ Pack<T, N> narrowed(const Pack<Wide<T>, N>& sum) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.at[i] = narrow<T>(sum.at[i]);
  return pack;
}

/// A warp per row of the table.
template <class T, int N>
__global__ void __launch_bounds__(threads) rare_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const auto* dy = static_cast<const T*>(args.dy);
  for (std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / warp_lanes;
       row < args.vocabulary; row += static_cast<std::int64_t>(gridDim.x) * (threads / warp_lanes)) {
    const Places places = places_of(lists, row);
    if (places.count > warp_lanes) {
      if (lane == 0) store(lists.frequent + atomic_add(lists.frequent_count, 1), static_cast<int>(row));
      continue;
    }
    T* to = static_cast<T*>(args.dtable) + row * args.dtable_stride;
    const std::int64_t packs = (args.columns + N - 1) / N;
    // All lanes take every turn: they tell each other the places.
    for (std::int64_t first = 0; first < packs; first += warp_lanes) {
      const std::int64_t column = (first + lane) * N;
      Pack<Wide<T>, N> sum{};
      for (int i = 0; i < places.count; ++i) {
        const std::int64_t place = __shfl_sync(whole_warp, places.place, i);
        if (column < args.columns)
          add_to<T, N>(sum, load_part<N>(dy + place * args.dy_stride + column, args.columns - column, T{}));
      }
      if (column < args.columns) store_part(to + column, args.columns - column, narrowed<T, N>(sum));
    }
  }
}

constexpr int frequent_lanes = 8;  // threads side by side in a row
constexpr int frequent_groups = threads / frequent_lanes;

constexpr int tokens_per_thread = 8;
constexpr int tokens_at_once = threads * tokens_per_thread;

template <class T, int N>
struct FrequentScratch {
  Shared<int> places[tokens_at_once];
  Shared<int> warp_counts[threads / warp_lanes];
  Shared<Wide<T>> sums[frequent_groups][frequent_lanes * N];
};

/// Where this thread's places begin among those of the block, which has `total` of them. Uses one barrier, before which
/// all have read what was in `warp_counts`.
struct Offset {
  int before, total;
};

template <class Scratch>
__device__ __forceinline__ Offset offset_of(int count, Scratch& scratch) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  int up_to_here = count;
#pragma unroll
  for (int delta = 1; delta < warp_lanes; delta *= 2) {
    const int other = __shfl_up_sync(whole_warp, up_to_here, delta);
    if (lane >= delta) up_to_here += other;
  }
  if (lane == warp_lanes - 1) scratch.warp_counts[warp] = up_to_here;
  __syncthreads();
  Offset offset{up_to_here - count, 0};
  for (int i = 0; i < threads / warp_lanes; ++i) {
    const int of_warp = scratch.warp_counts[i];
    if (i < warp) offset.before += of_warp;
    offset.total += of_warp;
  }
  return offset;
}

/// The places of a token among the `tokens_at_once` from `first`, in order, in scratch.places; returns how many.
template <class Scratch>
__device__ __forceinline__ int gather_places(const EmbeddingBackwardArgs& args, int token, std::int64_t first,
                                             Scratch& scratch) {
  const std::int64_t begin = first + static_cast<std::int64_t>(threadIdx.x) * tokens_per_thread;
  unsigned found = 0;
#pragma unroll
  for (int i = 0; i < tokens_per_thread; ++i) {
    if (begin + i < args.tokens_count && load(args.tokens + begin + i) == token)
      found |= 1U << static_cast<unsigned>(i);
  }
  __syncthreads();  // the places before have been read
  const Offset offset = offset_of(__popc(found), scratch);
  int next = offset.before;
#pragma unroll
  for (int i = 0; i < tokens_per_thread; ++i) {
    if ((found >> static_cast<unsigned>(i) & 1U) != 0) scratch.places[next++] = static_cast<int>(begin) + i;
  }
  __syncthreads();
  return offset.total;
}

/// A block per frequent token and slice of 8 packs of columns: its groups take turns at the places.
template <class T, int N>
__global__ void __launch_bounds__(threads) frequent_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  auto& scratch = shared_storage<FrequentScratch<T, N>>();
  const int lane = static_cast<int>(threadIdx.x) % frequent_lanes;
  const int group = static_cast<int>(threadIdx.x) / frequent_lanes;
  const std::int64_t slices = (args.columns + frequent_lanes * N - 1) / (frequent_lanes * N);
  const std::int64_t works = load(lists.frequent_count) * slices;
  for (std::int64_t work = blockIdx.x; work < works; work += gridDim.x) {
    const int token = load(lists.frequent + work / slices);
    const std::int64_t first_column = work % slices * (frequent_lanes * N);
    const std::int64_t column = first_column + lane * N;
    Pack<Wide<T>, N> sum{};
    for (std::int64_t first = 0; first < args.tokens_count; first += tokens_at_once) {
      const int count = gather_places(args, token, first, scratch);
      if (column >= args.columns) continue;
      for (int i = group; i < count; i += frequent_groups) {
        const T* from = static_cast<const T*>(args.dy) + scratch.places[i] * args.dy_stride + column;
        add_to<T, N>(sum, load_part<N>(from, args.columns - column, T{}));
      }
    }
#pragma unroll
    for (int i = 0; i < N; ++i) scratch.sums[group][lane * N + i] = sum.at[i];
    __syncthreads();
    for (int cell = static_cast<int>(threadIdx.x); cell < frequent_lanes * N; cell += threads) {
      if (first_column + cell >= args.columns) continue;
      Wide<T> total = scratch.sums[0][cell];
      for (int i = 1; i < frequent_groups; ++i) total += scratch.sums[i][cell];
      store(static_cast<T*>(args.dtable) + token * args.dtable_stride + first_column + cell, narrow<T>(total));
    }
    __syncthreads();
  }
}

template <class T, int N>
void launch_sums(const EmbeddingBackwardArgs& args, int multiprocessors, cudaStream_t stream) {
  launch(rare_kernel<T, N>, Grid{blocks_for(args.vocabulary, threads / warp_lanes), threads}, stream, args);
  if (args.tokens_count <= warp_lanes) return;  // too few for any to be frequent
  launch(frequent_kernel<T, N>, Grid{std::int64_t{4} * multiprocessors, threads}, stream, args);
}

}  // namespace

std::int64_t embedding_backward_scratch(std::int64_t vocabulary, std::int64_t tokens) {
  return vocabulary + tokens + tokens / warp_lanes + 1;
}

void launch_embedding_backward(const EmbeddingBackwardArgs& args, int multiprocessors, cudaStream_t stream) {
  launch(empty_kernel, Grid{blocks_for(args.vocabulary, threads), threads}, stream, args);
  launch(link_kernel, Grid{blocks_for(args.tokens_count, threads), threads}, stream, args);
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int n = pack_elements<T>;
    const bool wide = packs_fit<T>(args.dy, args.tokens_count, args.dy_stride, n) &&
                      packs_fit<T>(args.dtable, args.vocabulary, args.dtable_stride, n);
    if (wide) {
      launch_sums<T, n>(args, multiprocessors, stream);
    } else {
      launch_sums<T, 1>(args, multiprocessors, stream);
    }
  });
}

}  // namespace gpubench::cuda
