// Magnitudes are compared as integers: the order is the same for numbers, and NaN lies above infinity, so that it
// stays.
#include "reference/cuda/kernels/quantize.h"

#include <algorithm>

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int elements = 16;  // of a pack: 16 bytes of values
constexpr int in_flight = 2;

__device__ __forceinline__ std::uint32_t larger(std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }

__device__ __forceinline__ std::uint32_t block_max(std::uint32_t value, PerWarp<std::uint32_t>& scratch) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
#pragma unroll
  for (int offset = warp_lanes / 2; offset > 0; offset /= 2) {
    value = larger(value, __shfl_xor_sync(whole_warp, value, offset));
  }
  if (lane == 0) scratch.at[threadIdx.x / warp_lanes] = value;
  __syncthreads();
  value = lane < threads / warp_lanes ? static_cast<std::uint32_t>(scratch.at[lane]) : 0U;
#pragma unroll
  for (int offset = warp_lanes / 2; offset > 0; offset /= 2) {
    value = larger(value, __shfl_xor_sync(whole_warp, value, offset));
  }
  return value;
}

template <class T, Eight to, int N>
__global__ void __launch_bounds__(threads) quantize_kernel(QuantizeArgs args) {
  const auto* x = static_cast<const T*>(args.x);
  const float scale = load(args.scale);
  const std::int64_t packs_per_row = (args.columns + N - 1) / N;
  const std::int64_t packs = packs_per_row * args.rows;
  std::uint32_t largest = 0;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * threads * in_flight + threadIdx.x; first < packs;
       first += static_cast<std::int64_t>(gridDim.x) * threads * in_flight) {
    Loaded<T, N> loaded[in_flight];
    PackPlace places[in_flight];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * threads;
      if (pack >= packs) break;
      places[k] = place_of(pack, packs_per_row, args.rows, N);
      const T* from = x + places[k].row * args.x_stride + places[k].column;
      loaded[k] = load_part<N>(from, args.columns - places[k].column, T{});
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      if (first + static_cast<std::int64_t>(k) * threads >= packs) break;
      Pack<std::uint8_t, N> out;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float value = widen(loaded[k][i]);
        largest = larger(largest, magnitude_bits(value));
        out.at[i] = to == Eight::e4m3 ? e4m3_bits(scale * value) : e5m2_bits(scale * value);
      }
      store_part(args.values + places[k].row * args.columns + places[k].column, args.columns - places[k].column, out);
    }
  }
  largest = block_max(largest, shared_storage<PerWarp<std::uint32_t>>());
  if (threadIdx.x == 0) store(args.partial + blockIdx.x, largest);
}

__global__ void __launch_bounds__(threads) amax_kernel(QuantizeArgs args) {
  std::uint32_t largest = 0;
  for (int i = static_cast<int>(threadIdx.x); i < args.parts; i += threads)
    largest = larger(largest, load(args.partial + i));
  largest = block_max(largest, shared_storage<PerWarp<std::uint32_t>>());
  if (threadIdx.x != 0) return;
  store(args.amax, float_of_bits(largest));
  store(args.inverse, 1.0F / load(args.scale));
}

template <class T, Eight to>
void launch_typed(const QuantizeArgs& args, cudaStream_t stream) {
  const bool wide = packs_fit<T>(args.x, args.rows, args.x_stride, elements) &&
                    packs_fit<std::uint8_t>(args.values, args.rows, args.columns, elements);
  if (wide) {
    launch(quantize_kernel<T, to, elements>, Grid{args.parts, threads}, stream, args);
  } else {
    launch(quantize_kernel<T, to, 1>, Grid{args.parts, threads}, stream, args);
  }
}

}  // namespace

int quantize_parts(std::int64_t count, int multiprocessors) {
  const std::int64_t blocks = (count + std::int64_t{threads} * elements - 1) / (std::int64_t{threads} * elements);
  return static_cast<int>(std::clamp<std::int64_t>(blocks, 1, std::int64_t{8} * multiprocessors));
}

void launch_quantize(const QuantizeArgs& args, cudaStream_t stream) {
  with_float_type(args.from, [&](auto type) {
    using T = typename decltype(type)::type;
    if (args.to == Eight::e4m3) return launch_typed<T, Eight::e4m3>(args, stream);
    launch_typed<T, Eight::e5m2>(args, stream);
  });
  launch(amax_kernel, Grid{1, threads}, stream, args);
}

}  // namespace gpubench::cuda
