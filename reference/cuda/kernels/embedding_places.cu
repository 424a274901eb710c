// A counting sort by token. Atomics assign slots in any order; the places of frequent tokens are sorted here.
#include "reference/cuda/kernels/embedding_places.cuh"

#include "reference/cuda/kernels/memory.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;

/// Inclusive prefix sum over the lanes.
__device__ __forceinline__ int up_to_lane(int value) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
#pragma unroll
  for (int delta = 1; delta < warp_lanes; delta *= 2) {
    const int other = __shfl_up_sync(whole_warp, value, delta);
    if (lane >= delta) value += other;
  }
  return value;
}

__global__ void __launch_bounds__(threads) empty_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < args.rows;
       i += static_cast<std::int64_t>(gridDim.x) * threads) {
    store(lists.counts + i, 0);
    if (i != 0) continue;
    store(lists.frequent_count, 0);
    store(lists.given_out, 0);
  }
}

/// The table row of a position's token; -1: none.
__device__ __forceinline__ std::int64_t row_of(const EmbeddingBackwardArgs& args, std::int64_t position) {
  const std::int64_t token = load(args.tokens + position), row = token - args.first;
  return row >= 0 && row < args.rows && token != args.padding_token ? row : -1;
}

__global__ void __launch_bounds__(threads) count_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < args.tokens_count;
       i += static_cast<std::int64_t>(gridDim.x) * threads) {
    const std::int64_t row = row_of(args, i);
    if (row >= 0) store(lists.slots + i, atomic_add(lists.counts + row, 1));
  }
}

/// Assigns ranges of places to rows, in any order, with one atomic per warp.
__global__ void __launch_bounds__(threads) room_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  // All lanes loop equally often, for the prefix sum.
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x - lane; first < args.rows;
       first += step) {
    const std::int64_t row = first + lane;
    const int count = row < args.rows ? load(lists.counts + row) : 0;
    const int up_to_here = up_to_lane(count);
    int begin = 0;
    if (lane == warp_lanes - 1) begin = atomic_add(lists.given_out, up_to_here);
    begin = __shfl_sync(whole_warp, begin, warp_lanes - 1) + up_to_here - count;
    if (row < args.rows) store(lists.begins + row, begin);
    if (count > warp_lanes) store(lists.frequent + atomic_add(lists.frequent_count, 1), static_cast<int>(row));
  }
}

__global__ void __launch_bounds__(threads) place_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; i < args.tokens_count;
       i += static_cast<std::int64_t>(gridDim.x) * threads) {
    const std::int64_t row = row_of(args, i);
    if (row < 0) continue;
    store(lists.places + load(lists.begins + row) + load(lists.slots + i), static_cast<int>(i));
  }
}

constexpr int max_ranked = 1024;      // places sorted by rank counting
constexpr int marks_per_thread = 16;  // for longer lists
constexpr int marks = threads * marks_per_thread;

struct OrderScratch {
  Shared<int> cells[marks];  // places, or a mark per position of a stretch
  Shared<int> warp_counts[threads / warp_lanes];
};

/// This thread's offset among the places of the block, and their total. Uses one barrier, before which all threads must
/// have read `warp_counts`.
struct Offset {
  int before, total;
};

__device__ __forceinline__ Offset offset_of(int count, OrderScratch& scratch) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const int warp = static_cast<int>(threadIdx.x) / warp_lanes;
  const int up_to_here = up_to_lane(count);
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

__device__ __forceinline__ void rank_places(const int* places, int count, int* ordered, OrderScratch& scratch) {
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) scratch.cells[i] = load(places + i);
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) {
    const int place = scratch.cells[i];
    int smaller = 0;
    for (int j = 0; j < count; ++j) smaller += scratch.cells[j] < place ? 1 : 0;
    store(ordered + smaller, place);
  }
}

/// Marks the places of consecutive stretches of tokens, and reads the marks in order.
__device__ __forceinline__ void mark_places(const int* places, int count, std::int64_t tokens, int* ordered,
                                            OrderScratch& scratch) {
  int done = 0;
  for (std::int64_t first = 0; first < tokens; first += marks) {
    for (int i = static_cast<int>(threadIdx.x); i < marks; i += threads) scratch.cells[i] = 0;
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < count; i += threads) {
      const std::int64_t at = load(places + i) - first;
      if (at >= 0 && at < marks) scratch.cells[at] = 1;
    }
    __syncthreads();
    const int begin = static_cast<int>(threadIdx.x) * marks_per_thread;
    unsigned found = 0;
#pragma unroll
    for (int i = 0; i < marks_per_thread; ++i) {
      found |= static_cast<unsigned>(static_cast<int>(scratch.cells[begin + i])) << static_cast<unsigned>(i);
    }
    const Offset offset = offset_of(__popc(found), scratch);
    int next = done + offset.before;
#pragma unroll
    for (int i = 0; i < marks_per_thread; ++i) {
      if ((found >> static_cast<unsigned>(i) & 1U) != 0) store(ordered + next++, static_cast<int>(first) + begin + i);
    }
    done += offset.total;
    __syncthreads();  // all threads have read the marks and counts
  }
}

/// A block per frequent token: replaces its slots with its sorted places.
__global__ void __launch_bounds__(threads) order_kernel(EmbeddingBackwardArgs args) {
  const Lists lists = lists_of(args);
  auto& scratch = shared_storage<OrderScratch>();
  const int frequent = load(lists.frequent_count);
  for (int work = static_cast<int>(blockIdx.x); work < frequent; work += static_cast<int>(gridDim.x)) {
    const int row = load(lists.frequent + work);
    const int count = load(lists.counts + row);
    const int begin = load(lists.begins + row);
    if (count <= max_ranked) {
      rank_places(lists.places + begin, count, lists.slots + begin, scratch);
    } else {
      mark_places(lists.places + begin, count, args.tokens_count, lists.slots + begin, scratch);
    }
    __syncthreads();  // all threads have read the cells
  }
}

}  // namespace

std::int64_t embedding_backward_scratch(std::int64_t rows, std::int64_t tokens) {
  return 2 * rows + 2 * tokens + tokens / warp_lanes + 2;
}

void launch_embedding_places(const EmbeddingBackwardArgs& args, int multiprocessors, cudaStream_t stream) {
  launch(empty_kernel, Grid{blocks_for(args.rows, threads), threads}, stream, args);
  launch(count_kernel, Grid{blocks_for(args.tokens_count, threads), threads}, stream, args);
  launch(room_kernel, Grid{blocks_for(args.rows, threads), threads}, stream, args);
  launch(place_kernel, Grid{blocks_for(args.tokens_count, threads), threads}, stream, args);
  if (args.tokens_count <= warp_lanes) return;  // no token can be frequent
  launch(order_kernel, Grid{std::int64_t{4} * multiprocessors, threads}, stream, args);
}

}  // namespace gpubench::cuda
