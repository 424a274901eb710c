#include "reference/cuda/kernels/products.h"

#include <algorithm>

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = column_threads;
constexpr int warps = column_warps;
constexpr int rows_in_flight = 4;

/// A block sums a part of the rows for 32 packs of columns; a warp reads a row's packs, warps read neighbouring rows.
template <class From, int N>
__global__ void __launch_bounds__(threads) column_sum_kernel(ColumnSumArgs args) {
  using T = Wide<From>;
  const std::int64_t tiles = (args.columns + warp_lanes * N - 1) / (warp_lanes * N);
  const std::int64_t rows_per_part = (args.rows + args.parts - 1) / args.parts;
  const auto* x = static_cast<const From*>(args.x);
  for (std::int64_t work = blockIdx.x; work < tiles * args.parts; work += gridDim.x) {
    const std::int64_t part = work / tiles;
    const std::int64_t first_column = work % tiles * (warp_lanes * N);
    const std::int64_t column = first_column + static_cast<std::int64_t>(threadIdx.x % warp_lanes) * N;
    const std::int64_t end =
        part * rows_per_part + rows_per_part < args.rows ? part * rows_per_part + rows_per_part : args.rows;
    Pack<T, N> sum{};
    if (column < args.columns) {
      const From* from = x + column;
      const std::int64_t count = args.columns - column;
      std::int64_t row = part * rows_per_part + threadIdx.x / warp_lanes;
      for (; row + (rows_in_flight - 1) * warps < end; row += rows_in_flight * warps) {
        Loaded<From, N> packs[rows_in_flight];
#pragma unroll
        for (int k = 0; k < rows_in_flight; ++k)
          packs[k] = load_part<N>(from + (row + k * warps) * args.stride, count, From{});
#pragma unroll
        for (int i = 0; i < N; ++i) {
          sum.at[i] += (widen(packs[0][i]) + widen(packs[1][i])) + (widen(packs[2][i]) + widen(packs[3][i]));
        }
      }
      for (; row < end; row += warps) {
        const auto pack = load_part<N>(from + row * args.stride, count, From{});
#pragma unroll
        for (int i = 0; i < N; ++i) sum.at[i] += widen(pack[i]);
      }
    }
    store_tile<T, N>(sum, static_cast<T*>(args.partial), args.columns, part, first_column);
  }
}

constexpr int partial_columns = 32;  // per block
constexpr int partial_groups = 16;   // of parts, summed in parallel

template <class T>
struct GroupSums {
  Shared<T> at[partial_groups][partial_columns];
};

template <class To>
__global__ void __launch_bounds__(partial_columns* partial_groups) partial_sum_kernel(PartialSumArgs args) {
  using T = Wide<To>;
  auto& shared = shared_storage<GroupSums<T>>();
  const int lane = static_cast<int>(threadIdx.x) % partial_columns;
  const int group = static_cast<int>(threadIdx.x) / partial_columns;
  const std::int64_t tiles = (args.columns + partial_columns - 1) / partial_columns;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t column = tile * partial_columns + lane;
    T sum = 0;
    if (column < args.columns) {
      const T* from = static_cast<const T*>(args.partial) + column;
#pragma unroll 4
      for (std::int64_t part = group; part < args.parts; part += partial_groups)
        sum += load(from + part * args.columns);
    }
    shared.at[group][lane] = sum;
    __syncthreads();
    if (group == 0 && column < args.columns) {
      T total = shared.at[0][lane];
      for (int i = 1; i < partial_groups; ++i) total += shared.at[i][lane];
      const std::int64_t gaps = args.row_columns == 0 ? 0 : column / args.row_columns * args.row_gap;
      To* to = column < args.split ? static_cast<To*>(args.y) + column + gaps
                                   : static_cast<To*>(args.y_rest) + (column - args.split);
      store(to, narrow<To>(total));
    }
    __syncthreads();
  }
}

template <class From, int N>
void launch_packs(const ColumnSumArgs& args, cudaStream_t stream) {
  const std::int64_t tiles = (args.columns + warp_lanes * N - 1) / (warp_lanes * N);
  launch(column_sum_kernel<From, N>, Grid{blocks_for(tiles * args.parts, 1), threads}, stream, args);
}

}  // namespace

std::int64_t column_sum_parts(std::int64_t rows, std::int64_t columns, int multiprocessors) {
  constexpr std::int64_t tile_columns = warp_lanes * 8;
  constexpr std::int64_t min_rows = std::int64_t{warps} * rows_in_flight * 2;  // minimum per block
  const std::int64_t tiles = std::max<std::int64_t>(1, (columns + tile_columns - 1) / tile_columns);
  const std::int64_t wanted = (std::int64_t{8} * multiprocessors + tiles - 1) / tiles;
  return std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, rows / min_rows));
}

void launch_column_sum(const ColumnSumArgs& args, cudaStream_t stream) {
  with_any_type(args.from, [&](auto type) {
    using From = typename decltype(type)::type;
    constexpr int n = pack_elements<From>;
    if (packs_fit<From>(args.x, args.rows, args.stride, n)) {
      launch_packs<From, n>(args, stream);
    } else {
      launch_packs<From, 1>(args, stream);
    }
  });
  const std::int64_t columns = args.sums * args.columns;
  launch_partial_sum({args.to, args.partial, args.parts / args.sums, columns, columns, args.y, nullptr, args.columns,
                      args.y_stride - args.columns},
                     stream);
}

void launch_partial_sum(const PartialSumArgs& args, cudaStream_t stream) {
  const Grid grid{blocks_for(args.columns, partial_columns), partial_columns * partial_groups};
  with_any_type(args.to,
                [&](auto type) { launch(partial_sum_kernel<typename decltype(type)::type>, grid, stream, args); });
}

}  // namespace gpubench::cuda
