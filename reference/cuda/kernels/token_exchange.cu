// Every block first counts each rank's rows for the experts before each one, which gives each row's source. A warp then
// moves a row, 16 bytes per thread if everything is aligned.
#include "reference/cuda/kernels/virtual_ranks.h"

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / warp_lanes;

struct Counts {
  Shared<int> before[max_exchange_counts];
};

struct Routes {
  const TokenExchangeArgs& args;
  Counts& counts;

  /// A rank's rows for experts before `expert`.
  __device__ __forceinline__ int before(int rank, int expert) const {
    return counts.before[rank * (args.experts + 1) + expert];
  }
  __device__ __forceinline__ int size(int rank, int expert) const {
    return before(rank, expert + 1) - before(rank, expert);
  }
  /// All ranks' rows for experts in [first, expert).
  __device__ __forceinline__ std::int64_t between(int first, int expert) const {
    std::int64_t rows = 0;
    for (int rank = 0; rank < args.ranks; ++rank) rows += before(rank, expert) - before(rank, first);
    return rows;
  }
};

/// A warp per rank sums its sizes, 32 experts at a time.
__device__ __forceinline__ void count_rows(const TokenExchangeArgs& args, Counts& counts) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  for (int rank = static_cast<int>(threadIdx.x) / warp_lanes; rank < args.ranks; rank += warps) {
    const int first = rank * (args.experts + 1);
    if (lane == 0) counts.before[first] = 0;
    std::int64_t so_far = 0;
    for (int begin = 0; begin < args.experts; begin += warp_lanes) {
      const int expert = begin + lane;
      std::int64_t up_to_here = 0;
      if (expert < args.experts) {
        const int size = load(args.sizes[rank] + expert);
        up_to_here = size > 0 ? size : 0;
      }
#pragma unroll
      for (int offset = 1; offset < warp_lanes; offset *= 2) {
        const std::int64_t below = __shfl_up_sync(whole_warp, up_to_here, offset);
        if (lane >= offset) up_to_here += below;
      }
      up_to_here += so_far;
      if (expert < args.experts)
        counts.before[first + expert + 1] = static_cast<int>(up_to_here < args.rows ? up_to_here : args.rows);
      so_far = __shfl_sync(whole_warp, up_to_here, warp_lanes - 1);
    }
  }
  __syncthreads();
}

/// The last expert in [first, first + count) with rows_before(expert) <= row.
template <class RowsBefore>
__device__ __forceinline__ int expert_of(int first, int count, std::int64_t row, const RowsBefore& rows_before) {
  int low = first, high = first + count;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (rows_before(middle) <= row ? low : high) = middle;
  }
  return low;
}

/// Source of a row; rank -1: none, the row is 0.
struct RowSource {
  int rank;
  std::int64_t row;
};

__device__ __forceinline__ RowSource source_of_dispatched(const Routes& routes, std::int64_t row) {
  const int each = routes.args.experts / routes.args.ranks, first = routes.args.member * each;
  if (row >= routes.between(first, first + each)) return {-1, 0};
  const int expert = expert_of(first, each, row, [&](int at) { return routes.between(first, at); });
  std::int64_t within = row - routes.between(first, expert);
  int rank = 0;
  while (within >= routes.size(rank, expert)) within -= routes.size(rank++, expert);
  return {rank, routes.before(rank, expert) + within};
}

__device__ __forceinline__ RowSource source_of_returned(const Routes& routes, std::int64_t row) {
  const int member = routes.args.member, experts = routes.args.experts;
  if (row >= routes.before(member, experts)) return {-1, 0};
  const int expert = expert_of(0, experts, row, [&](int at) { return routes.before(member, at); });
  const int each = experts / routes.args.ranks, rank = expert / each;
  std::int64_t there = routes.between(rank * each, expert) + row - routes.before(member, expert);
  for (int sender = 0; sender < member; ++sender) there += routes.size(sender, expert);
  return {rank, there};
}

template <class Chunk>
__global__ void __launch_bounds__(threads) token_exchange_kernel(TokenExchangeArgs args) {
  auto& counts = shared_storage<Counts>();
  count_rows(args, counts);
  const Routes routes{args, counts};
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  const std::int64_t rows = static_cast<std::int64_t>(args.rows) * (args.dispatches ? args.ranks : 1);
  const std::int64_t chunks = args.row_bytes / static_cast<std::int64_t>(sizeof(Chunk));
  for (std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / warp_lanes; row < rows;
       row += static_cast<std::int64_t>(gridDim.x) * warps) {
    const RowSource source = args.dispatches ? source_of_dispatched(routes, row) : source_of_returned(routes, row);
    Chunk* to = static_cast<Chunk*>(args.to) + row * chunks;
    if (source.rank < 0) {
      for (std::int64_t at = lane; at < chunks; at += warp_lanes) store(to + at, Chunk{});
      continue;
    }
    const Chunk* from = static_cast<const Chunk*>(args.from[source.rank]) + source.row * chunks;
    for (std::int64_t at = lane; at < chunks; at += warp_lanes) store(to + at, load(from + at));
  }
  if (!args.dispatches || blockIdx.x != 0) return;
  const int each = args.experts / args.ranks, first = args.member * each;
  for (int expert = static_cast<int>(threadIdx.x); expert < each; expert += threads)
    store(args.own_sizes + expert, static_cast<int>(routes.between(first + expert, first + expert + 1)));
}

}  // namespace

void launch_token_exchange(const TokenExchangeArgs& args, cudaStream_t stream) {
  using Wide = Pack<std::uint32_t, 4>;
  bool wide = packs_fit<std::uint8_t>(args.to, 2, args.row_bytes, pack_bytes);
  for (int rank = 0; rank < args.ranks; ++rank)
    wide = wide && packs_fit<std::uint8_t>(args.from[rank], 2, args.row_bytes, pack_bytes);
  const std::int64_t rows = static_cast<std::int64_t>(args.rows) * (args.dispatches ? args.ranks : 1);
  const Grid grid{blocks_for(rows, warps), threads};
  if (wide) {
    launch(token_exchange_kernel<Wide>, grid, stream, args);
  } else {
    launch(token_exchange_kernel<std::uint8_t>, grid, stream, args);
  }
}

}  // namespace gpubench::cuda
