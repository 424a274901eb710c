// As column_sum, but that what is summed is made on the way.
#include "reference/cuda/kernels/gelu_bias_gradient.h"

#include "reference/cuda/kernels/column_tiles.cuh"
#include "reference/cuda/kernels/gelu.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int rows_in_flight = 2;

/// Makes N elements of a row of dz and adds them up as they are stored.
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

void launch_gelu_bias_gradient(const GeluBiasGradientArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    args.tanh ? launch_typed<T, true>(args, stream) : launch_typed<T, false>(args, stream);
  });
}

}  // namespace gpubench::cuda
