// AdamW over all parameters in one launch. Step and learning rate are read on the device, so that one captured launch
// serves every step; what follows from them is computed in f64 once per block, each factor rounded once. State in f64
// has gradients and copies in f64.
#include <algorithm>

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/optimizer.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;

/// In W: f32, or f64.
template <class W>
struct Factors {
  W beta1, one_minus_beta1, beta2, one_minus_beta2;
  W inverse_bc1, inverse_bc2;  ///< 1 / (1 - beta^step)
  W epsilon, weight_decay, lr;
  W clip;  ///< of the gradient
};

template <class W>
struct CorrectionScratch {
  Shared<W> inverse_bc1, inverse_bc2;
};

__device__ __forceinline__ float root(float x) { return sqrtf(x); }
__device__ __forceinline__ double root(double x) { return sqrt(x); }

/// One parameter's step.
template <class W>
__device__ __forceinline__ void update(const Factors<W>& f, W g, W& w, W& m, W& v) {
  m = f.beta1 * m + f.one_minus_beta1 * g;
  v = f.beta2 * v + f.one_minus_beta2 * (g * g);
  const W direction = (m * f.inverse_bc1) / (root(v * f.inverse_bc2) + f.epsilon);
  w -= f.lr * (direction + f.weight_decay * w);
}

/// N elements from `at`.
template <class W, class G, class C, bool copies, int N>
__device__ __forceinline__ void update_pack(const AdamWEntry& entry, const Factors<W>& factors, std::int64_t at) {
  const auto g = load_pack<N>(static_cast<const G*>(entry.gradient) + at);
  auto w = load_pack<N>(static_cast<const W*>(entry.weight) + at).unpacked();
  auto m = load_pack<N>(static_cast<const W*>(entry.m) + at).unpacked();
  auto v = load_pack<N>(static_cast<const W*>(entry.v) + at).unpacked();
#pragma unroll
  for (int i = 0; i < N; ++i) update<W>(factors, factors.clip * widen(g[i]), w.at[i], m.at[i], v.at[i]);
  store_pack(static_cast<W*>(entry.weight) + at, w);
  store_pack(static_cast<W*>(entry.m) + at, m);
  store_pack(static_cast<W*>(entry.v) + at, v);
  if constexpr (copies) {
    Pack<C, N> copy;
#pragma unroll
    for (int i = 0; i < N; ++i) copy.at[i] = narrow<C>(w.at[i]);
    store_pack(static_cast<C*>(entry.copy) + at, copy);
  }
}

__device__ __forceinline__ bool aligned(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % pack_bytes == 0;
}

template <class W, class G, class C, bool copies>
__device__ __forceinline__ void update_chunk(const AdamWEntry& entry, const Factors<W>& factors, std::int64_t first) {
  constexpr int packs = pack_elements<W>;  // elements of a pack
  const std::int64_t rest = entry.elements - first;
  const int count = rest < chunk_elements ? static_cast<int>(rest) : chunk_elements;
  const bool wide = aligned(entry.weight) && aligned(entry.m) && aligned(entry.v) && aligned(entry.gradient) &&
                    (!copies || aligned(entry.copy));
  const int in_packs = wide ? count / packs * packs : 0;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x) * packs; i < in_packs; i += threads * packs) {
    update_pack<W, G, C, copies, packs>(entry, factors, first + i);
  }
  for (int i = in_packs + static_cast<int>(threadIdx.x); i < count; i += threads) {
    update_pack<W, G, C, copies, 1>(entry, factors, first + i);
  }
}

template <class G>
__device__ __forceinline__ void update_chunk_from(const AdamWEntry& entry, const Factors<float>& factors,
                                                  std::int64_t first) {
  if (entry.copy == nullptr) return update_chunk<float, G, float, false>(entry, factors, first);
  switch (entry.copy_type) {
    case Element::bf16: return update_chunk<float, G, Bf16, true>(entry, factors, first);
    case Element::f16: return update_chunk<float, G, F16, true>(entry, factors, first);
    default: return update_chunk<float, G, float, true>(entry, factors, first);
  }
}

__device__ __forceinline__ void update_any(const AdamWEntry& entry, const Factors<float>& factors, std::int64_t first) {
  switch (entry.gradient_type) {
    case Element::bf16: return update_chunk_from<Bf16>(entry, factors, first);
    case Element::f16: return update_chunk_from<F16>(entry, factors, first);
    default: return update_chunk_from<float>(entry, factors, first);
  }
}

__device__ __forceinline__ void update_any(const AdamWEntry& entry, const Factors<double>& factors,
                                           std::int64_t first) {
  if (entry.copy == nullptr) return update_chunk<double, double, double, false>(entry, factors, first);
  update_chunk<double, double, double, true>(entry, factors, first);
}

template <class W>
__global__ void __launch_bounds__(threads) adamw_kernel(AdamWArgs args) {
  auto& scratch = shared_storage<CorrectionScratch<W>>();
  // 1 - beta in f64, rounded once, as the formula has it.
  Factors<W> factors = {
      static_cast<W>(args.beta1),
      static_cast<W>(1.0 - args.beta1),
      static_cast<W>(args.beta2),
      static_cast<W>(1.0 - args.beta2),
      W(0),
      W(0),
      static_cast<W>(args.epsilon),
      static_cast<W>(args.weight_decay),
      args.lr_type == Element::f64 ? static_cast<W>(load(static_cast<const double*>(args.lr)))
                                   : static_cast<W>(load(static_cast<const float*>(args.lr))),
      args.norm == nullptr ? W(1) : static_cast<W>(clip_factor(args.norm, args.norm_type, args.limit))};
  if (threadIdx.x == 0) {
    const auto step = static_cast<double>(load(args.step));
    scratch.inverse_bc1 = static_cast<W>(1.0 / (1.0 - pow(args.beta1, step)));
    scratch.inverse_bc2 = static_cast<W>(1.0 / (1.0 - pow(args.beta2, step)));
  }
  __syncthreads();
  factors.inverse_bc1 = scratch.inverse_bc1;
  factors.inverse_bc2 = scratch.inverse_bc2;
  for (std::int64_t i = blockIdx.x; i < args.chunk_count; i += gridDim.x) {
    const TensorChunk chunk = load(args.chunks + i);
    const AdamWEntry entry = load(args.entries + chunk.tensor);
    update_any(entry, factors, static_cast<std::int64_t>(chunk.chunk) * chunk_elements);
  }
}

}  // namespace

void launch_adamw(const AdamWArgs& args, int multiprocessors, cudaStream_t stream) {
  // Four blocks of 256 threads keep 64 kB in flight on a multiprocessor.
  const std::int64_t blocks = std::min(args.chunk_count, std::int64_t{4} * multiprocessors);
  if (args.state == Element::f64) return launch(adamw_kernel<double>, Grid{blocks, threads}, stream, args);
  launch(adamw_kernel<float>, Grid{blocks, threads}, stream, args);
}

}  // namespace gpubench::cuda
