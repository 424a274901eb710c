// Sums and maxima over a warp and a block, always in the same order.
#pragma once

#include "reference/cuda/kernels/device.cuh"

namespace gpubench::cuda {

inline constexpr int most_warps = 32;

template <class T>
__device__ __forceinline__ T warp_sum(T value) {
#pragma unroll
  for (int offset = warp_lanes / 2; offset > 0; offset /= 2) value += __shfl_xor_sync(whole_warp, value, offset);
  return value;
}

/// Room for one value per warp.
template <class T>
struct PerWarp {
  Shared<T> at[most_warps];
};

/// The sum over the block, in all of its threads; blockDim.x is a multiple of the warp. `scratch` must not be written
/// again before another barrier: loops alternate between two.
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

}  // namespace gpubench::cuda
