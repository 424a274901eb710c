// The 2-norm of all gradients together, and the scaling that limits it.
//
// Gradients of 1e-30 count and those of 1e30 do not overflow: squares are added up in f32 only within a pack, and where
// that sum leaves the safe range of f32, the pack is summed again in f64. Packs are added up in f64.
#include <algorithm>

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/optimizer.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;
constexpr int packs_in_flight = 4;

template <class T, int N>
__device__ __forceinline__ double squares_of(const Loaded<T, N>& pack) {
  Wide<T> sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum += widen(pack[i]) * widen(pack[i]);
  // Neither near the smallest normal number, where squares have lost bits, nor near the largest.
  if (sizeof(sum) == 8 || (sum > Wide<T>(0x1p-80) && sum < Wide<T>(0x1p120))) return static_cast<double>(sum);
  double wide = 0.0;
#pragma unroll
  for (int i = 0; i < N; ++i) wide += static_cast<double>(widen(pack[i])) * static_cast<double>(widen(pack[i]));
  return wide;
}

/// What a chunk is of its tensor, and how many of its elements go in packs.
struct ChunkRange {
  std::int64_t first;
  int count, in_packs;
};

template <class T>
__device__ __forceinline__ ChunkRange range_of(const GradientEntry& entry, int chunk, bool also_clipped) {
  const std::int64_t first = static_cast<std::int64_t>(chunk) * chunk_elements;
  const std::int64_t rest = entry.elements - first;
  const int count = rest < chunk_elements ? static_cast<int>(rest) : chunk_elements;
  const bool wide = reinterpret_cast<std::uintptr_t>(entry.gradient) % pack_bytes == 0 &&
                    (!also_clipped || reinterpret_cast<std::uintptr_t>(entry.clipped) % pack_bytes == 0);
  return {first, count, wide ? count / pack_elements<T> * pack_elements<T> : 0};
}

template <class T>
__device__ __forceinline__ double chunk_squares(const GradientEntry& entry, int chunk) {
  constexpr int n = pack_elements<T>;
  constexpr int step = threads * n;
  const ChunkRange range = range_of<T>(entry, chunk, false);
  const T* from = static_cast<const T*>(entry.gradient) + range.first;
  double sum = 0.0;
  int i = static_cast<int>(threadIdx.x) * n;
  for (; i + (packs_in_flight - 1) * step < range.in_packs; i += packs_in_flight * step) {
    Loaded<T, n> loaded[packs_in_flight];
#pragma unroll
    for (int k = 0; k < packs_in_flight; ++k) loaded[k] = load_pack<n>(from + i + k * step);
#pragma unroll
    for (int k = 0; k < packs_in_flight; ++k) sum += squares_of(loaded[k]);
  }
  for (; i < range.in_packs; i += step) sum += squares_of(load_pack<n>(from + i));
  for (i = range.in_packs + static_cast<int>(threadIdx.x); i < range.count; i += threads) {
    sum += squares_of(load_pack<1>(from + i));
  }
  return sum;
}

__global__ void __launch_bounds__(threads) squares_kernel(GradientNormArgs args) {
  double sum = 0.0;
  for (std::int64_t i = blockIdx.x; i < args.chunk_count; i += gridDim.x) {
    const TensorChunk chunk = load(args.chunks + i);
    const GradientEntry entry = load(args.entries + chunk.tensor);
    switch (entry.type) {
      case Element::bf16: sum += chunk_squares<Bf16>(entry, chunk.chunk); break;
      case Element::f16: sum += chunk_squares<F16>(entry, chunk.chunk); break;
      case Element::f64: sum += chunk_squares<double>(entry, chunk.chunk); break;
      default: sum += chunk_squares<float>(entry, chunk.chunk); break;
    }
  }
  const double total = block_sum(sum, shared_storage<PerWarp<double>>());
  if (threadIdx.x == 0) store(args.partial + blockIdx.x, total);
}

template <class Norm>
__global__ void __launch_bounds__(threads) root_kernel(GradientNormArgs args) {
  double sum = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < args.parts; i += threads) sum += load(args.partial + i);
  const double total = block_sum(sum, shared_storage<PerWarp<double>>());
  if (threadIdx.x == 0) store(static_cast<Norm*>(args.norm), static_cast<Norm>(sqrt(total)));
}

template <class T, int N>
__device__ __forceinline__ Pack<T, N> scaled(const Loaded<T, N>& pack, Wide<T> factor) {
  Pack<T, N> result;
#pragma unroll
  for (int i = 0; i < N; ++i) result.at[i] = narrow<T>(widen(pack[i]) * factor);
  return result;
}

template <class T>
__device__ __forceinline__ void scale_chunk(const GradientEntry& entry, int chunk, double exact_factor) {
  const auto factor = static_cast<Wide<T>>(exact_factor);
  constexpr int n = pack_elements<T>;
  constexpr int step = threads * n;
  const ChunkRange range = range_of<T>(entry, chunk, true);
  const T* from = static_cast<const T*>(entry.gradient) + range.first;
  T* to = static_cast<T*>(entry.clipped) + range.first;
  int i = static_cast<int>(threadIdx.x) * n;
  for (; i + step < range.in_packs; i += 2 * step) {
    const auto a = load_pack<n>(from + i);
    const auto b = load_pack<n>(from + i + step);
    store_pack(to + i, scaled(a, factor));
    store_pack(to + i + step, scaled(b, factor));
  }
  for (; i < range.in_packs; i += step) store_pack(to + i, scaled(load_pack<n>(from + i), factor));
  for (i = range.in_packs + static_cast<int>(threadIdx.x); i < range.count; i += threads) {
    store_pack(to + i, scaled(load_pack<1>(from + i), factor));
  }
}

__global__ void __launch_bounds__(threads) clip_kernel(ClipArgs args) {
  const double factor = clip_factor(args.norm, args.norm_type, args.limit);
  for (std::int64_t i = blockIdx.x; i < args.chunk_count; i += gridDim.x) {
    const TensorChunk chunk = load(args.chunks + i);
    const GradientEntry entry = load(args.entries + chunk.tensor);
    switch (entry.type) {
      case Element::bf16: scale_chunk<Bf16>(entry, chunk.chunk, factor); break;
      case Element::f16: scale_chunk<F16>(entry, chunk.chunk, factor); break;
      case Element::f64: scale_chunk<double>(entry, chunk.chunk, factor); break;
      default: scale_chunk<float>(entry, chunk.chunk, factor); break;
    }
  }
}

}  // namespace

int gradient_norm_parts(std::int64_t chunk_count, int multiprocessors) {
  return static_cast<int>(std::clamp<std::int64_t>(chunk_count, 1, std::int64_t{4} * multiprocessors));
}

void launch_gradient_norm(const GradientNormArgs& args, cudaStream_t stream) {
  launch(squares_kernel, Grid{args.parts, threads}, stream, args);
  const Grid one{1, threads};
  if (args.norm_type == Element::f64) return launch(root_kernel<double>, one, stream, args);
  launch(root_kernel<float>, one, stream, args);
}

void launch_clip(const ClipArgs& args, int multiprocessors, cudaStream_t stream) {
  const std::int64_t blocks = std::min(args.chunk_count, std::int64_t{8} * multiprocessors);
  launch(clip_kernel, Grid{blocks, threads}, stream, args);
}

}  // namespace gpubench::cuda
