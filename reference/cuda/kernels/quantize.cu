// Magnitudes are compared as integers, which keeps their order and places NaN above infinity, so that NaN stays.
#include "reference/cuda/kernels/quantize.h"

#include <algorithm>

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int elements = 16;  // per pack: 16 bytes of values
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

template <Eight to>
__device__ __forceinline__ std::uint8_t eight_bits(float x) {
  if (to == Eight::e4m3 || to == Eight::e4m3_unsaturated) return e4m3_bits(x, to == Eight::e4m3);
  return e5m2_bits(x, to == Eight::e5m2);
}

template <class T, Eight to, int N>
__global__ void __launch_bounds__(threads) quantize_kernel(QuantizeArgs args) {
  const auto* x = static_cast<const T*>(args.x);
  const float scale = to == Eight::none ? 1.0F : load(args.scale);
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
        if (to != Eight::none) out.at[i] = eight_bits<to>(scale * value);
      }
      if (to == Eight::none) continue;
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
  if (args.inverse != nullptr) store(args.inverse, 1.0F / load(args.scale));
}

// By exponents, one less if the largest significand is above 1.75. Subnormal numbers are scaled up first.
__global__ void __launch_bounds__(threads) scale_kernel(ScaleFromAmaxArgs args) {
  std::uint32_t largest = 0;
  for (std::int64_t i = threadIdx.x; i < args.count; i += threads)
    largest = larger(largest, magnitude_bits(load(args.history + i)));
  largest = block_max(largest, shared_storage<PerWarp<std::uint32_t>>());
  if (threadIdx.x != 0) return;
  const bool subnormal = largest < 0x800000U;
  const std::uint32_t normal = subnormal ? magnitude_bits(float_of_bits(largest) * 0x1p24F) : largest;
  const int exponent = static_cast<int>(normal >> 23) - 127 - (subnormal ? 24 : 0);
  const int power = args.room - exponent - ((normal & 0x7FFFFFU) > 0x600000U ? 1 : 0);
  const bool usable = largest > 0U && largest < 0x7F800000U;
  const int clamped = power < -126 ? -126 : power > 127 ? 127 : power;
  store(args.scale, float_of_bits(static_cast<std::uint32_t>((usable ? clamped : 0) + 127) << 23));
}

template <class T, Eight to>
void launch_typed(const QuantizeArgs& args, cudaStream_t stream) {
  const bool wide = packs_fit<T>(args.x, args.rows, args.x_stride, elements) &&
                    (to == Eight::none || packs_fit<std::uint8_t>(args.values, args.rows, args.columns, elements));
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
    switch (args.to) {
      case Eight::none: return launch_typed<T, Eight::none>(args, stream);
      case Eight::e4m3: return launch_typed<T, Eight::e4m3>(args, stream);
      case Eight::e5m2: return launch_typed<T, Eight::e5m2>(args, stream);
      case Eight::e4m3_unsaturated: return launch_typed<T, Eight::e4m3_unsaturated>(args, stream);
      case Eight::e5m2_unsaturated: return launch_typed<T, Eight::e5m2_unsaturated>(args, stream);
    }
  });
  launch(amax_kernel, Grid{1, threads}, stream, args);
}

void launch_scale_from_amax(const ScaleFromAmaxArgs& args, cudaStream_t stream) {
  launch(scale_kernel, Grid{1, threads}, stream, args);
}

}  // namespace gpubench::cuda
