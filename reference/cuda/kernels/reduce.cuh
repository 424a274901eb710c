// Sums over a warp, a block, and columns in a block, in a fixed order.
#pragma once

#include "reference/cuda/kernels/memory.cuh"

namespace gpubench::cuda {

inline constexpr int max_warps = 32;

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int offset = warp_lanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(whole_warp, value, offset);
  return value;
}

template <class T>
struct PerWarp {
  Shared<T> at[max_warps];
};

/// The sum over the block, returned in all threads; blockDim.x is a multiple of the warp size. `scratch` must not be
/// reused before another barrier: loops alternate between two.
template <class T>
__device__ __forceinline__ T block_sum(T value, PerWarp<T>& scratch) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  value = warp_sum(value);
  if (blockDim.x == warp_lanes) return value;
  if (lane == 0) scratch.at[threadIdx.x / warp_lanes] = value;
  __syncthreads();
  value = lane < static_cast<int>(blockDim.x / warp_lanes) ? static_cast<T>(scratch.at[lane]) : T(0);
  return warp_sum(value);
}

// Column sums: warps of a block read neighbouring rows, lanes neighbouring columns.

inline constexpr int column_threads = 256;
inline constexpr int column_warps = column_threads / warp_lanes;

template <class T, int N>
struct TileSums {
  Shared<T> at[column_warps][warp_lanes * N];
};

/// Adds the warps' column sums in order and writes them to partial [parts, columns]. All threads of the block must call
/// it.
template <class T, int N>
__device__ __forceinline__ void store_tile(const Pack<T, N>& sum, T* partial, std::int64_t columns, std::int64_t part,
                                           std::int64_t first_column) {
  auto& shared = shared_storage<TileSums<T, N>>();
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
#pragma unroll
  for (int i = 0; i < N; ++i) shared.at[threadIdx.x / warp_lanes][lane + i * warp_lanes] = sum.at[i];
  __syncthreads();
  for (int cell = static_cast<int>(threadIdx.x); cell < warp_lanes * N; cell += column_threads) {
    T total = shared.at[0][cell];
    for (int warp = 1; warp < column_warps; ++warp) total += shared.at[warp][cell];
    // Cell i * 32 + lane holds element i of the lane's pack.
    const std::int64_t column = first_column + (cell % warp_lanes) * N + cell / warp_lanes;
    if (column < columns) store(partial + part * columns + column, total);
  }
  __syncthreads();
}

}  // namespace gpubench::cuda
