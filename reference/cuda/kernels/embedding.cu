// The forward copies 16 bytes at a time if everything is aligned, else single elements.
//
// The gradient visits each table row once. Its places (embedding_places.cuh) are sorted before the sum, which is
// therefore deterministic: by the warp that sums them, or in advance for tokens that occur more often than a warp has
// lanes. The data read grow with the number of tokens, whatever their distribution.
#include <stdexcept>

#include "reference/cuda/kernels/embedding_places.cuh"
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int in_flight = 4;  // chunks per thread

template <class Chunk>
__global__ void __launch_bounds__(threads) forward_kernel(EmbeddingForwardArgs args) {
  // Counts in chunks from here on.
  const std::int64_t scale = sizeof(Chunk) / static_cast<unsigned>(args.element_bytes);
  const std::int64_t columns = args.columns / scale;
  const std::int64_t chunks = columns * args.tokens_count;
  const auto* table = static_cast<const Chunk*>(args.table);
  auto* y = static_cast<Chunk*>(args.y);
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + threadIdx.x; first < chunks;
       first += static_cast<std::int64_t>(gridDim.x) * threads * in_flight) {
    std::int64_t rows[in_flight];
    int tokens[in_flight];
    Chunk held[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t at = first + k * threads;
      rows[k] = chunks <= 0xFFFFFFFF ? static_cast<unsigned>(at) / static_cast<unsigned>(columns) : at / columns;
      tokens[k] = at < chunks ? load(args.tokens + rows[k]) : -1;
    }
    const auto column = [&](int k) { return first + k * threads - rows[k] * columns; };
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t row = tokens[k] - args.first;
      if (row >= 0 && row < args.rows) {
        held[k] = load(table + row * (args.table_stride / scale) + column(k));
      } else {
        memset(&held[k], tokens[k] >= 0 && tokens[k] < args.vocabulary ? 0 : 0xFF, sizeof(Chunk));
      }
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      if (first + k * threads < chunks) store(y + rows[k] * (args.y_stride / scale) + column(k), held[k]);
    }
  }
}

template <class Chunk>
bool chunks_fit(const EmbeddingForwardArgs& args) {
  const auto fits = [&](const void* data, std::int64_t stride, std::int64_t rows) {
    return reinterpret_cast<std::uintptr_t>(data) % sizeof(Chunk) == 0 &&
           (rows <= 1 || static_cast<std::uint64_t>(stride * args.element_bytes) % sizeof(Chunk) == 0);
  };
  return static_cast<std::uint64_t>(args.columns * args.element_bytes) % sizeof(Chunk) == 0 &&
         fits(args.table, args.table_stride, args.rows) && fits(args.y, args.y_stride, args.tokens_count);
}

template <class Chunk>
void launch_chunks(const EmbeddingForwardArgs& args, cudaStream_t stream) {
  const std::int64_t chunks =
      args.columns * args.element_bytes / static_cast<std::int64_t>(sizeof(Chunk)) * args.tokens_count;
  launch(forward_kernel<Chunk>, Grid{blocks_for(chunks, threads * in_flight), threads}, stream, args);
}

constexpr int rows_in_flight = 4;

/// Sorts `count` places, at most 32, into lanes 0, 1, ...
__device__ __forceinline__ int places_in_order(const int* places, int count) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int unsorted = lane < count ? load(places + lane) : 0x7FFFFFFF;
  // Places are distinct: the one with k smaller ones belongs in lane k.
  int smaller = 0;
  for (int i = 0; i < count; ++i) smaller += __shfl_sync(whole_warp, unsorted, i) < unsorted ? 1 : 0;
  int place = 0;
  for (int i = 0; i < count; ++i) {
    const int rank = __shfl_sync(whole_warp, smaller, i);
    const int value = __shfl_sync(whole_warp, unsorted, i);
    if (rank == lane) place = value;
  }
  return place;
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

/// Adds up to `count` rows of dy from `column` on; all loads are issued first.
template <class T, int N>
__device__ __forceinline__ void add_rows(const EmbeddingBackwardArgs& args, const int (&places)[rows_in_flight],
                                         int count, std::int64_t column, Pack<Wide<T>, N>& sum) {
  const T* dy = static_cast<const T*>(args.dy) + column;
  Loaded<T, N> rows[rows_in_flight];
#pragma unroll
  for (int k = 0; k < rows_in_flight; ++k) {
    if (k < count) rows[k] = load_part<N>(dy + places[k] * args.dy_stride, args.columns - column, T{});
  }
#pragma unroll
  for (int k = 0; k < rows_in_flight; ++k) {
    if (k < count) add_to<T, N>(sum, rows[k]);
  }
}

/// A warp per table row.
template <class T, int N>
__global__ void __launch_bounds__(threads) rare_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  for (std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / warp_lanes; row < args.rows;
       row += static_cast<std::int64_t>(gridDim.x) * (threads / warp_lanes)) {
    const int count = load(lists.counts + row);
    if (count > warp_lanes || (args.adds && count == 0)) continue;
    const int own_place = places_in_order(lists.places + load(lists.begins + row), count);
    T* to = static_cast<T*>(args.dtable) + row * args.dtable_stride;
    const std::int64_t packs = (args.columns + N - 1) / N;
    // All lanes loop equally often, since they exchange places by shuffles.
    for (std::int64_t first = 0; first < packs; first += warp_lanes) {
      const std::int64_t column = (first + lane) * N;
      Pack<Wide<T>, N> sum{};
      for (int i = 0; i < count; i += rows_in_flight) {
        int places[rows_in_flight];
#pragma unroll
        for (int k = 0; k < rows_in_flight; ++k) places[k] = __shfl_sync(whole_warp, own_place, (i + k) % warp_lanes);
        if (column < args.columns) add_rows<T, N>(args, places, count - i, column, sum);
      }
      if (args.adds && column < args.columns) add_to<T, N>(sum, load_part<N>(to + column, args.columns - column, T{}));
      if (column < args.columns) store_part(to + column, args.columns - column, narrowed<T, N>(sum));
    }
  }
}

constexpr int frequent_lanes = 8;  // per row
constexpr int frequent_groups = threads / frequent_lanes;

template <class T, int N>
struct FrequentScratch {
  Shared<Wide<T>> sums[frequent_groups][frequent_lanes * N];
};

/// A block per frequent token and slice of 8 packs of columns; its groups take turns at the places.
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
    const int count = load(lists.counts + token);
    const int* ordered = lists.slots + load(lists.begins + token);
    constexpr int turn = rows_in_flight * frequent_groups;
    for (int i = group; i < count && column < args.columns; i += turn) {
      int places[rows_in_flight];
      int here = 0;
#pragma unroll
      for (int k = 0; k < rows_in_flight; ++k) {
        const int at = i + k * frequent_groups;
        if (at >= count) break;
        places[k] = load(ordered + at);
        here = k + 1;
      }
      add_rows<T, N>(args, places, here, column, sum);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) scratch.sums[group][lane * N + i] = sum.at[i];
    __syncthreads();
    for (int cell = static_cast<int>(threadIdx.x); cell < frequent_lanes * N; cell += threads) {
      if (first_column + cell >= args.columns) continue;
      Wide<T> total = scratch.sums[0][cell];
      for (int i = 1; i < frequent_groups; ++i) total += scratch.sums[i][cell];
      T* to = static_cast<T*>(args.dtable) + token * args.dtable_stride + first_column + cell;
      if (args.adds) total += widen(load(to));
      store(to, narrow<T>(total));
    }
    __syncthreads();
  }
}

template <class T, int N>
void launch_sums(const EmbeddingBackwardArgs& args, int multiprocessors, cudaStream_t stream) {
  launch(rare_kernel<T, N>, Grid{blocks_for(args.rows, threads / warp_lanes), threads}, stream, args);
  if (args.tokens_count <= warp_lanes) return;  // no token can be frequent
  launch(frequent_kernel<T, N>, Grid{std::int64_t{4} * multiprocessors, threads}, stream, args);
}

}  // namespace

void launch_embedding_forward(const EmbeddingForwardArgs& args, cudaStream_t stream) {
  if (chunks_fit<Pack<std::uint32_t, 4>>(args)) return launch_chunks<Pack<std::uint32_t, 4>>(args, stream);
  switch (args.element_bytes) {
    case 1: return launch_chunks<std::uint8_t>(args, stream);
    case 2: return launch_chunks<std::uint16_t>(args, stream);
    case 4: return launch_chunks<std::uint32_t>(args, stream);
    case 8: return launch_chunks<std::uint64_t>(args, stream);
    default: throw std::logic_error("embedding_forward: elements must have 1, 2, 4 or 8 bytes");
  }
}

void launch_embedding_backward(const EmbeddingBackwardArgs& args, int multiprocessors, cudaStream_t stream) {
  launch_embedding_places(args, multiprocessors, stream);
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int n = pack_elements<T>;
    const bool wide = packs_fit<T>(args.dy, args.tokens_count, args.dy_stride, n) &&
                      packs_fit<T>(args.dtable, args.rows, args.dtable_stride, n);
    if (wide) {
      launch_sums<T, n>(args, multiprocessors, stream);
    } else {
      launch_sums<T, 1>(args, multiprocessors, stream);
    }
  });
}

}  // namespace gpubench::cuda
