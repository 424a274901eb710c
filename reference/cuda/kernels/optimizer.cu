// The 2-norm of all gradients, clipping, AdamW, Lion and SGD, each one launch for all tensors.
//
// The norm handles gradients from 1e-30 to 1e30: squares are added in f32 within a pack only. If that sum leaves the
// safe range of f32, the pack is summed again in f64; packs are added in f64.
//
// Step and learning rate are read on the device, so that a captured launch serves every step. Derived factors are
// computed in f64 once per block and rounded once.
#include "reference/cuda/kernels/optimizer.h"

#include <algorithm>

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
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
  // Outside this range squares lose bits or overflow.
  if (sizeof(sum) == 8 || (sum > Wide<T>(0x1p-80) && sum < Wide<T>(0x1p120))) return static_cast<double>(sum);
  double wide = 0.0;
#pragma unroll
  for (int i = 0; i < N; ++i) wide += static_cast<double>(widen(pack[i])) * static_cast<double>(widen(pack[i]));
  return wide;
}

__device__ __forceinline__ bool aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % pack_bytes == 0;
}

/// A chunk's part of its tensor, and the number of its elements in packs.
struct ChunkRange {
  std::int64_t first;
  int count, in_packs;
};

template <class T>
__device__ __forceinline__ ChunkRange range_of(const GradientEntry& entry, int chunk, bool also_clipped) {
  const std::int64_t first = static_cast<std::int64_t>(chunk) * chunk_elements;
  const std::int64_t rest = entry.elements - first;
  const int count = rest < chunk_elements ? static_cast<int>(rest) : chunk_elements;
  const bool wide = aligned(entry.gradient) && (!also_clipped || aligned(entry.clipped));
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

__device__ __forceinline__ double scalar_at(const void* at, Element type) {
  return type == Element::f64 ? load(static_cast<const double*>(at))
                              : static_cast<double>(load(static_cast<const float*>(at)));
}

/// Factor that limits a norm to `limit`.
__device__ __forceinline__ double clip_factor(const void* norm, Element norm_type, double limit) {
  const double ratio = limit / (scalar_at(norm, norm_type) + 1e-6);
  // Keeps NaN: a NaN norm must not give a factor of 1.
  return ratio >= 1.0 ? 1.0 : ratio;
}

template <class T, int N>
__device__ __forceinline__ Pack<T, N> scaled(const Loaded<T, N>& pack, Wide<T> factor) {
  Pack<T, N> result;
#pragma unroll
  for (int i = 0; i < N; ++i) result.at[i] = narrow<T>(widen(pack[i]) * factor);
  return result;
}

/// Stores transform(pack), as To, for each pack of the chunk's gradients.
template <class T, class To, class Transform>
__device__ __forceinline__ void transform_chunk(const GradientEntry& entry, int chunk, const Transform& transform) {
  constexpr int n = pack_elements<T>;
  constexpr int step = threads * n;
  const ChunkRange range = range_of<T>(entry, chunk, true);
  const T* from = static_cast<const T*>(entry.gradient) + range.first;
  To* to = static_cast<To*>(entry.clipped) + range.first;
  int i = static_cast<int>(threadIdx.x) * n;
  for (; i + step < range.in_packs; i += 2 * step) {
    const auto a = load_pack<n>(from + i);
    const auto b = load_pack<n>(from + i + step);
    store_pack(to + i, transform(a));
    store_pack(to + i + step, transform(b));
  }
  for (; i < range.in_packs; i += step) store_pack(to + i, transform(load_pack<n>(from + i)));
  for (i = range.in_packs + static_cast<int>(threadIdx.x); i < range.count; i += threads) {
    store_pack(to + i, transform(load_pack<1>(from + i)));
  }
}

template <class T>
__device__ __forceinline__ void scale_chunk(const GradientEntry& entry, int chunk, double exact_factor) {
  const auto factor = static_cast<Wide<T>>(exact_factor);
  transform_chunk<T, T>(entry, chunk, [&](const auto& pack) { return scaled(pack, factor); });
}

/// Adds the number of infinite and NaN elements to `bad`.
template <class T, int N>
__device__ __forceinline__ Pack<Wide<T>, N> unscaled(const Loaded<T, N>& pack, Wide<T> inverse, int& bad) {
  Pack<Wide<T>, N> result;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const Wide<T> g = widen(pack[i]);
    bad += g - g == Wide<T>(0) ? 0 : 1;
    result.at[i] = g * inverse;
  }
  return result;
}

/// Results are f32 or f64. Returns the number of this thread's infinite and NaN gradients.
template <class T>
__device__ __forceinline__ int unscale_chunk(const GradientEntry& entry, int chunk, double exact_inverse) {
  const auto inverse = static_cast<Wide<T>>(exact_inverse);
  int bad = 0;
  transform_chunk<T, Wide<T>>(entry, chunk, [&](const auto& pack) { return unscaled(pack, inverse, bad); });
  return bad;
}

__global__ void __launch_bounds__(threads) unscale_kernel(UnscaleArgs args) {
  const double inverse = 1.0 / scalar_at(args.scale, args.scale_type);
  double bad = 0.0;
  for (std::int64_t i = blockIdx.x; i < args.chunk_count; i += gridDim.x) {
    const TensorChunk chunk = load(args.chunks + i);
    const GradientEntry entry = load(args.entries + chunk.tensor);
    switch (entry.type) {
      case Element::bf16: bad += unscale_chunk<Bf16>(entry, chunk.chunk, inverse); break;
      case Element::f16: bad += unscale_chunk<F16>(entry, chunk.chunk, inverse); break;
      case Element::f64: bad += unscale_chunk<double>(entry, chunk.chunk, inverse); break;
      default: bad += unscale_chunk<float>(entry, chunk.chunk, inverse); break;
    }
  }
  const double total = block_sum(bad, shared_storage<PerWarp<double>>());
  if (threadIdx.x == 0) store(args.partial + blockIdx.x, total);
}

__device__ __forceinline__ void store_scalar(void* at, Element type, double value) {
  if (type == Element::f64) return store(static_cast<double*>(at), value);
  store(static_cast<float*>(at), static_cast<float>(value));
}

__global__ void __launch_bounds__(threads) found_inf_kernel(UnscaleArgs args) {
  double bad = 0.0;
  for (int i = static_cast<int>(threadIdx.x); i < args.parts; i += threads) bad += load(args.partial + i);
  const double total = block_sum(bad, shared_storage<PerWarp<double>>());
  if (threadIdx.x == 0) store_scalar(args.found_inf, args.scale_type, total > 0.0 ? 1.0 : 0.0);
}

__global__ void __launch_bounds__(warp_lanes) update_scale_kernel(UpdateScaleArgs args) {
  if (threadIdx.x != 0) return;
  const double scale = scalar_at(args.scale, args.scale_type);
  const int steps = load(args.tracker) + 1;
  const bool found = scalar_at(args.found_inf, args.found_type) != 0.0;
  const bool grows = !found && steps == args.interval;
  const double changed = scale * (found ? args.backoff : args.growth);
  const bool finite = args.scale_type == Element::f64 || static_cast<float>(changed) < INFINITY;
  if (found || (grows && finite)) store_scalar(args.scale, args.scale_type, changed);
  store(args.tracker, found || grows ? 0 : steps);
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

__device__ __forceinline__ float root(float x) { return sqrtf(x); }
__device__ __forceinline__ double root(double x) { return sqrt(x); }

/// The update by one optimizer, in W: f32 or f64. `two_moments`: uses v.
template <class W>
struct AdamWRule {
  static constexpr bool two_moments = true;
  W beta1, one_minus_beta1, beta2, one_minus_beta2;
  W inverse_bc1, inverse_bc2;  ///< 1 / (1 - beta^step)
  W epsilon, lr;
  W weight_decay, l2;  ///< decoupled; part of the gradient
  W clip;              ///< factor of the gradient

  __device__ __forceinline__ void operator()(W unclipped, W& w, W& m, W& v) const {
    const W g = clip * unclipped + l2 * w;
    m = beta1 * m + one_minus_beta1 * g;
    v = beta2 * v + one_minus_beta2 * (g * g);
    const W direction = (m * inverse_bc1) / (root(v * inverse_bc2) + epsilon);
    w -= lr * (direction + weight_decay * w);
  }
};

template <class W>
struct LionRule {
  static constexpr bool two_moments = false;
  W beta1, one_minus_beta1, beta2, one_minus_beta2, weight_decay, lr;

  __device__ __forceinline__ void operator()(W g, W& w, W& m, W& /*v*/) const {
    const W c = beta1 * m + one_minus_beta1 * g;
    const W sign = c > W(0) ? W(1) : c < W(0) ? W(-1) : c;
    m = beta2 * m + one_minus_beta2 * g;
    w -= lr * (sign + weight_decay * w);
  }
};

template <class W>
struct SgdRule {
  static constexpr bool two_moments = false;
  W momentum, weight_decay, lr;
  bool nesterov;

  __device__ __forceinline__ void operator()(W g, W& w, W& m, W& /*v*/) const {
    const W d = g + weight_decay * w;
    m = momentum * m + d;
    w -= lr * (nesterov ? d + momentum * m : m);
  }
};

template <class W>
struct CorrectionScratch {
  Shared<W> inverse_bc1, inverse_bc2;
};

/// All threads of a block must call it, once.
template <class W>
__device__ __forceinline__ AdamWRule<W> rule_of(const AdamWArgs& args) {
  auto& scratch = shared_storage<CorrectionScratch<W>>();
  if (threadIdx.x == 0) {
    const auto step = static_cast<double>(load(args.step));
    scratch.inverse_bc1 = static_cast<W>(1.0 / (1.0 - pow(args.beta1, step)));
    scratch.inverse_bc2 = static_cast<W>(1.0 / (1.0 - pow(args.beta2, step)));
  }
  __syncthreads();
  // 1 - beta in f64, rounded once, as in the formula.
  return {static_cast<W>(args.beta1),
          static_cast<W>(1.0 - args.beta1),
          static_cast<W>(args.beta2),
          static_cast<W>(1.0 - args.beta2),
          scratch.inverse_bc1,
          scratch.inverse_bc2,
          static_cast<W>(args.epsilon),
          static_cast<W>(scalar_at(args.lr, args.lr_type)),
          static_cast<W>(args.weight_decay),
          static_cast<W>(args.l2),
          args.norm == nullptr ? W(1) : static_cast<W>(clip_factor(args.norm, args.norm_type, args.limit))};
}

template <class W>
__device__ __forceinline__ LionRule<W> rule_of(const LionArgs& args) {
  return {static_cast<W>(args.beta1),        static_cast<W>(1.0 - args.beta1),
          static_cast<W>(args.beta2),        static_cast<W>(1.0 - args.beta2),
          static_cast<W>(args.weight_decay), static_cast<W>(scalar_at(args.lr, args.lr_type))};
}

template <class W>
__device__ __forceinline__ SgdRule<W> rule_of(const SgdArgs& args) {
  return {static_cast<W>(args.momentum), static_cast<W>(args.weight_decay),
          static_cast<W>(scalar_at(args.lr, args.lr_type)), args.nesterov};
}

template <class W, class G, class C, bool copies, int N, class Rule>
__device__ __forceinline__ void update_pack(const ParameterEntry& entry, const Rule& rule, std::int64_t at) {
  const auto g = load_pack<N>(static_cast<const G*>(entry.gradient) + at);
  auto w = load_pack<N>(static_cast<const W*>(entry.weight) + at).unpacked();
  auto m = load_pack<N>(static_cast<const W*>(entry.m) + at).unpacked();
  Pack<W, N> v{};
  if constexpr (Rule::two_moments) v = load_pack<N>(static_cast<const W*>(entry.v) + at).unpacked();
#pragma unroll
  for (int i = 0; i < N; ++i) rule(widen(g[i]), w.at[i], m.at[i], v.at[i]);
  store_pack(static_cast<W*>(entry.weight) + at, w);
  store_pack(static_cast<W*>(entry.m) + at, m);
  if constexpr (Rule::two_moments) store_pack(static_cast<W*>(entry.v) + at, v);
  if constexpr (copies) {
    Pack<C, N> copy;
#pragma unroll
    for (int i = 0; i < N; ++i) copy.at[i] = narrow<C>(w.at[i]);
    store_pack(static_cast<C*>(entry.copy) + at, copy);
  }
}

template <class W, class G, class C, bool copies, class Rule>
__device__ __forceinline__ void update_chunk(const ParameterEntry& entry, const Rule& rule, std::int64_t first) {
  constexpr int packs = pack_elements<W>;  // elements per pack
  const std::int64_t rest = entry.elements - first;
  const int count = rest < chunk_elements ? static_cast<int>(rest) : chunk_elements;
  const bool wide = aligned(entry.weight) && aligned(entry.m) && aligned(entry.v) && aligned(entry.gradient) &&
                    (!copies || aligned(entry.copy));
  const int in_packs = wide ? count / packs * packs : 0;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x) * packs; i < in_packs; i += threads * packs) {
    update_pack<W, G, C, copies, packs>(entry, rule, first + i);
  }
  for (int i = in_packs + static_cast<int>(threadIdx.x); i < count; i += threads) {
    update_pack<W, G, C, copies, 1>(entry, rule, first + i);
  }
}

template <class G, class Rule>
__device__ __forceinline__ void update_chunk_from(const ParameterEntry& entry, const Rule& rule, std::int64_t first) {
  if (entry.copy == nullptr) return update_chunk<float, G, float, false>(entry, rule, first);
  switch (entry.copy_type) {
    case Element::bf16: return update_chunk<float, G, Bf16, true>(entry, rule, first);
    case Element::f16: return update_chunk<float, G, F16, true>(entry, rule, first);
    default: return update_chunk<float, G, float, true>(entry, rule, first);
  }
}

template <template <class> class Rule>
__device__ __forceinline__ void update_any(const ParameterEntry& entry, const Rule<float>& rule, std::int64_t first) {
  switch (entry.gradient_type) {
    case Element::bf16: return update_chunk_from<Bf16>(entry, rule, first);
    case Element::f16: return update_chunk_from<F16>(entry, rule, first);
    default: return update_chunk_from<float>(entry, rule, first);
  }
}

template <template <class> class Rule>
__device__ __forceinline__ void update_any(const ParameterEntry& entry, const Rule<double>& rule, std::int64_t first) {
  if (entry.copy == nullptr) return update_chunk<double, double, double, false>(entry, rule, first);
  update_chunk<double, double, double, true>(entry, rule, first);
}

template <class W, class Args>
__global__ void __launch_bounds__(threads) update_kernel(Args args) {
  if (args.found_inf != nullptr && scalar_at(args.found_inf, args.found_type) != 0.0) return;
  const auto rule = rule_of<W>(args);
  for (std::int64_t i = blockIdx.x; i < args.chunk_count; i += gridDim.x) {
    const TensorChunk chunk = load(args.chunks + i);
    const ParameterEntry entry = load(args.entries + chunk.tensor);
    update_any(entry, rule, static_cast<std::int64_t>(chunk.chunk) * chunk_elements);
  }
}

template <class Args>
void launch_any_update(const Args& args, int multiprocessors, cudaStream_t stream) {
  // Four blocks of 256 threads keep 64 kB in flight per multiprocessor, 48 kB with one moment.
  const std::int64_t blocks = std::min(args.chunk_count, std::int64_t{4} * multiprocessors);
  if (args.state == Element::f64) return launch(update_kernel<double, Args>, Grid{blocks, threads}, stream, args);
  launch(update_kernel<float, Args>, Grid{blocks, threads}, stream, args);
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

void launch_unscale(const UnscaleArgs& args, cudaStream_t stream) {
  launch(unscale_kernel, Grid{args.parts, threads}, stream, args);
  launch(found_inf_kernel, Grid{1, threads}, stream, args);
}

void launch_update_scale(const UpdateScaleArgs& args, cudaStream_t stream) {
  launch(update_scale_kernel, Grid{1, warp_lanes}, stream, args);
}

void launch_update(const AdamWArgs& args, int multiprocessors, cudaStream_t stream) {
  launch_any_update(args, multiprocessors, stream);
}

void launch_update(const LionArgs& args, int multiprocessors, cudaStream_t stream) {
  launch_any_update(args, multiprocessors, stream);
}

void launch_update(const SgdArgs& args, int multiprocessors, cudaStream_t stream) {
  launch_any_update(args, multiprocessors, stream);
}

}  // namespace gpubench::cuda
