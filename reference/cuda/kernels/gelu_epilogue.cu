#include "reference/cuda/kernels/products.h"

#include <stdexcept>

#include "reference/cuda/kernels/gelu.cuh"
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {
namespace {

constexpr int epilogue_threads = 256;
constexpr int epilogue_in_flight = 2;

/// A pack is 16 bytes of the 16-bit tensors and 32 of the product; each thread has two in flight.
template <class T, bool tanh, bool gradient, int N>
__global__ void __launch_bounds__(epilogue_threads) gelu_epilogue_kernel(GeluEpilogueArgs args) {
  const auto* product = static_cast<const float*>(args.product);
  const auto* bias = static_cast<const T*>(args.bias);
  auto* pre = static_cast<T*>(args.pre);
  auto* c = static_cast<T*>(args.c);
  const std::int64_t packs_per_row = (args.columns + N - 1) / N;
  const std::int64_t packs = packs_per_row * args.rows;
  constexpr int at_once = epilogue_threads * epilogue_in_flight;
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * at_once + threadIdx.x; first < packs;
       first += static_cast<std::int64_t>(gridDim.x) * at_once) {
    Loaded<float, N> products[epilogue_in_flight] = {};
    Loaded<T, N> others[epilogue_in_flight] = {};  // bias or pre-activation
    PackPlace places[epilogue_in_flight] = {};
#pragma unroll
    for (int k = 0; k < epilogue_in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * epilogue_threads;
      if (pack >= packs) break;
      places[k] = place_of(pack, packs_per_row, args.rows, N);
      const std::int64_t count = args.columns - places[k].column;
      products[k] = load_part<N>(product + places[k].row * args.product_stride + places[k].column, count, 0.0F);
      if constexpr (gradient) {
        others[k] = load_part<N>(pre + places[k].row * args.pre_stride + places[k].column, count, T{});
      } else if (bias != nullptr) {
        others[k] = load_part<N>(bias + places[k].column, count, T{});
      }
    }
#pragma unroll
    for (int k = 0; k < epilogue_in_flight; ++k) {
      const std::int64_t pack = first + static_cast<std::int64_t>(k) * epilogue_threads;
      if (pack >= packs) break;
      const std::int64_t count = args.columns - places[k].column;
      Pack<T, N> out;
      Pack<T, N> kept;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float other = widen(others[k][i]);  // 0 without a bias
        if constexpr (gradient) {
          out.at[i] = narrow<T>(products[k][i] * gelu_slope_of<tanh>(other));
        } else {
          const float z = products[k][i] + other;
          kept.at[i] = narrow<T>(z);
          out.at[i] = narrow<T>(gelu_of<tanh>(z));
        }
      }
      if constexpr (!gradient) store_part(pre + places[k].row * args.pre_stride + places[k].column, count, kept);
      store_part(c + places[k].row * args.c_stride + places[k].column, count, out);
    }
  }
}

template <class T, bool tanh, bool gradient>
void launch_epilogue(const GeluEpilogueArgs& args, cudaStream_t stream) {
  constexpr int n = pack_elements<T>;
  const bool packed = packs_fit<float>(args.product, args.rows, args.product_stride, n) &&
                      packs_fit<T>(args.pre, args.rows, args.pre_stride, n) &&
                      packs_fit<T>(args.c, args.rows, args.c_stride, n) &&
                      (args.bias == nullptr || packs_fit<T>(args.bias, 1, 0, n));
  const std::int64_t packs = packed ? (args.columns + n - 1) / n * args.rows : args.columns * args.rows;
  const Grid grid{blocks_for(packs, epilogue_threads * epilogue_in_flight), epilogue_threads};
  if (packed) {
    launch(gelu_epilogue_kernel<T, tanh, gradient, n>, grid, stream, args);
  } else {
    launch(gelu_epilogue_kernel<T, tanh, gradient, 1>, grid, stream, args);
  }
}

template <class T>
void launch_form(const GeluEpilogueArgs& args, cudaStream_t stream) {
  if (args.tanh) {
    args.gradient ? launch_epilogue<T, true, true>(args, stream) : launch_epilogue<T, true, false>(args, stream);
  } else {
    args.gradient ? launch_epilogue<T, false, true>(args, stream) : launch_epilogue<T, false, false>(args, stream);
  }
}

constexpr int rows_in_flight = 2;

/// Computes N elements of a row of dz and adds them, as stored, to `sum`.
template <class T, bool tanh, int N>
__device__ __forceinline__ void finish(const Loaded<Wide<T>, N>& product, const Loaded<T, N>& pre, T* dz,
                                       std::int64_t count, Pack<Wide<T>, N>& sum) {
  Pack<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    out.at[i] = narrow<T>(product[i] * gelu_slope_of<tanh>(widen(pre[i])));
    sum.at[i] += widen(out.at[i]);
  }
  store_part(dz, count, out);
}

/// As column_sum, but computes the summed elements.
template <class T, bool tanh, int N>
__global__ void __launch_bounds__(column_threads) gelu_bias_gradient_kernel(GeluBiasGradientArgs args) {
  using W = Wide<T>;
  constexpr int tile_columns = warp_lanes * N;
  const std::int64_t tiles = (args.columns + tile_columns - 1) / tile_columns;
  const std::int64_t rows_per_part = (args.rows + args.parts - 1) / args.parts;
  for (std::int64_t work = blockIdx.x; work < tiles * args.parts; work += gridDim.x) {
    const std::int64_t part = work / tiles;
    const std::int64_t first_column = work % tiles * tile_columns;
    const std::int64_t column = first_column + static_cast<std::int64_t>(threadIdx.x % warp_lanes) * N;
    const std::int64_t end =
        part * rows_per_part + rows_per_part < args.rows ? part * rows_per_part + rows_per_part : args.rows;
    Pack<W, N> sum{};
    if (column < args.columns) {
      const W* product = static_cast<const W*>(args.product) + column;
      const T* pre = static_cast<const T*>(args.pre) + column;
      T* dz = static_cast<T*>(args.dz) + column;
      const std::int64_t count = args.columns - column;
      std::int64_t row = part * rows_per_part + threadIdx.x / warp_lanes;
      for (; row + (rows_in_flight - 1) * column_warps < end; row += rows_in_flight * column_warps) {
        Loaded<W, N> products[rows_in_flight];
        Loaded<T, N> pres[rows_in_flight];
#pragma unroll
        for (int k = 0; k < rows_in_flight; ++k) {
          products[k] = load_part<N>(product + (row + k * column_warps) * args.product_stride, count, W{});
          pres[k] = load_part<N>(pre + (row + k * column_warps) * args.pre_stride, count, T{});
        }
#pragma unroll
        for (int k = 0; k < rows_in_flight; ++k) {
          finish<T, tanh, N>(products[k], pres[k], dz + (row + k * column_warps) * args.dz_stride, count, sum);
        }
      }
      for (; row < end; row += column_warps) {
        const auto products = load_part<N>(product + row * args.product_stride, count, W{});
        const auto pres = load_part<N>(pre + row * args.pre_stride, count, T{});
        finish<T, tanh, N>(products, pres, dz + row * args.dz_stride, count, sum);
      }
    }
    store_tile<W, N>(sum, static_cast<W*>(args.partial), args.columns, part, first_column);
  }
}

template <class T, bool tanh, int N>
void launch_packs(const GeluBiasGradientArgs& args, cudaStream_t stream) {
  const std::int64_t tiles = (args.columns + warp_lanes * N - 1) / (warp_lanes * N);
  launch(gelu_bias_gradient_kernel<T, tanh, N>, Grid{blocks_for(tiles * args.parts, 1), column_threads}, stream, args);
}

template <class T, bool tanh>
void launch_typed(const GeluBiasGradientArgs& args, cudaStream_t stream) {
  constexpr int n = pack_elements<T>;
  if (packs_fit<Wide<T>>(args.product, args.rows, args.product_stride, n) &&
      packs_fit<T>(args.pre, args.rows, args.pre_stride, n) && packs_fit<T>(args.dz, args.rows, args.dz_stride, n)) {
    launch_packs<T, tanh, n>(args, stream);
  } else {
    launch_packs<T, tanh, 1>(args, stream);
  }
}

}  // namespace

void launch_gelu_epilogue(const GeluEpilogueArgs& args, cudaStream_t stream) {
  switch (args.data) {
    case Element::f16: return launch_form<F16>(args, stream);
    case Element::bf16: return launch_form<Bf16>(args, stream);
    default: throw std::logic_error("gelu_epilogue: the type must be f16 or bf16");
  }
}

void launch_gelu_bias_gradient(const GeluBiasGradientArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    args.tanh ? launch_typed<T, true>(args, stream) : launch_typed<T, false>(args, stream);
  });
}

}  // namespace gpubench::cuda
