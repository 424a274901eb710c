// A row is read once, into the registers of a warp (up to 1024 elements) or a block (up to 16384; half of both in f64);
// longer rows are read three times.
// The variance is computed about the mean, since E[x^2] - mean^2 cancels. RMS norm uses mean 0 and no beta. With a
// residual, the row is the rounded sum, computed and stored on the fly.
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/reduce.cuh"
#include "reference/cuda/kernels/rows.h"

namespace gpubench::cuda {
namespace {

/// Per thread; f64 elements take two registers.
template <class T>
constexpr int held_elements = sizeof(T) == sizeof(double) ? 16 : 32;
/// Loaded at once: the registers have no room for a whole row of residuals.
template <class T>
constexpr int residual_elements = held_elements<T> / 2;
constexpr int warp_kernel_threads = 128;
constexpr int block_kernel_threads = 512;  // at most: leaves 128 registers per thread

template <class W>
struct BlockSums {
  PerWarp<W> sum;
  PerWarp<W> squares;
};

/// Sum over the threads of a row: a warp or the block.
template <bool whole_block, class W>
__device__ __forceinline__ W row_sum(W value, PerWarp<W> BlockSums<W>::*scratch) {
  if constexpr (whole_block) {
    return block_sum(value, shared_storage<BlockSums<W>>().*scratch);
  } else {
    return warp_sum(value);
  }
}

/// Call after each row of a block. With means, two sums alternate in shared memory; without, the next row's squares
/// could overwrite values that slower warps still read.
__device__ __forceinline__ void separate_rows(const LayerNormForwardArgs& args) {
  if (args.mean == nullptr) __syncthreads();
}

template <class T, class P, int N>
__device__ __forceinline__ Pack<T, N> normalized(const Loaded<T, N>& x, const LayerNormForwardArgs& args,
                                                 std::int64_t column, Wide<T> mean, Wide<T> rstd) {
  const std::int64_t count = args.columns - column;
  const auto gamma = load_part<N>(static_cast<const P*>(args.gamma) + column, count, P{});
  Pack<T, N> y;
  if (args.beta == nullptr) {
#pragma unroll
    for (int i = 0; i < N; ++i) y.at[i] = narrow<T>(widen(gamma[i]) * rounded_if<T>(args.rounds, widen(x[i]) * rstd));
    return y;
  }
  const auto beta = load_part<N>(static_cast<const P*>(args.beta) + column, count, P{});
#pragma unroll
  for (int i = 0; i < N; ++i) {
    y.at[i] = narrow<T>(widen(gamma[i]) * ((widen(x[i]) - mean) * rstd) + widen(beta[i]));
  }
  return y;
}

template <class T, int N>
__device__ __forceinline__ Wide<T> sum_of(const Loaded<T, N>& pack) {
  Wide<T> sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) sum += widen(pack[i]);
  return sum;
}

/// For a pack with `count` elements.
template <class T, int N>
__device__ __forceinline__ Wide<T> squares_of(const Loaded<T, N>& pack, std::int64_t count, Wide<T> mean) {
  Wide<T> sum = 0;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const Wide<T> deviation = widen(pack[i]) - mean;
    sum += i < count ? deviation * deviation : Wide<T>(0);
  }
  return sum;
}

/// Correctly rounded root and quotient, as rstd is judged as tightly as its type allows.
__device__ __forceinline__ float rstd_of(float variance, const LayerNormForwardArgs& args) {
  return 1.0F / sqrtf(variance + static_cast<float>(args.epsilon));
}
__device__ __forceinline__ double rstd_of(double variance, const LayerNormForwardArgs& args) {
  return 1.0 / sqrt(variance + args.epsilon);
}

template <class W>
__device__ __forceinline__ void store_statistics(const LayerNormForwardArgs& args, std::int64_t row, W mean, W rstd) {
  if (args.mean != nullptr) store(static_cast<W*>(args.mean) + row, mean);
  store(static_cast<W*>(args.rstd) + row, rstd);
}

template <class T, int N>
__device__ __forceinline__ Pack<T, N> with_residual(const Loaded<T, N>& x, const Loaded<T, N>& residual) {
  Pack<T, N> sum;
#pragma unroll
  for (int i = 0; i < N; ++i) sum.at[i] = narrow<T>(widen(x[i]) + widen(residual[i]));
  return sum;
}

/// Rows that fit in registers: a warp per row, or a block.
template <class T, class P, int N, bool whole_block, bool adds>
__global__ void __launch_bounds__(whole_block ? block_kernel_threads : warp_kernel_threads, whole_block ? 1 : 4)
    forward_kernel(LayerNormForwardArgs args) {
  using W = Wide<T>;
  constexpr int packs = held_elements<T> / N;
  constexpr int residual_packs = residual_elements<T> / N;
  const int sharing = whole_block ? static_cast<int>(blockDim.x) : warp_lanes;
  const int rank = static_cast<int>(threadIdx.x) % sharing;
  const std::int64_t rows_at_once =
      static_cast<std::int64_t>(gridDim.x) * (blockDim.x / static_cast<unsigned>(sharing));
  const W inverse_columns = W(1) / static_cast<W>(args.columns);
  for (std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / sharing; row < args.rows;
       row += rows_at_once) {
    const T* from = static_cast<const T*>(args.x) + row * args.x_stride;
    Loaded<T, N> held[packs];
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const std::int64_t column = static_cast<std::int64_t>(k * sharing + rank) * N;
      if (column < args.columns) held[k] = load_part<N>(from + column, args.columns - column, T{});
    }
    if constexpr (adds) {
      const T* residual_row = static_cast<const T*>(args.residual) + row * args.residual_stride;
      T* sum_row = static_cast<T*>(args.sum) + row * args.sum_stride;
#pragma unroll
      for (int first = 0; first < packs; first += residual_packs) {
        Loaded<T, N> residual[residual_packs];
#pragma unroll
        for (int k = 0; k < residual_packs; ++k) {
          const std::int64_t column = static_cast<std::int64_t>((first + k) * sharing + rank) * N;
          if (column < args.columns) residual[k] = load_part<N>(residual_row + column, args.columns - column, T{});
        }
#pragma unroll
        for (int k = 0; k < residual_packs; ++k) {
          const std::int64_t column = static_cast<std::int64_t>((first + k) * sharing + rank) * N;
          if (column >= args.columns) break;
          const auto sum = with_residual(held[first + k], residual[k]);
          store_part(sum_row + column, args.columns - column, sum);
          held[first + k] = as_loaded(sum);  // the row as stored
        }
      }
    }
    W mean = 0;
    if (args.mean != nullptr) {
      W sum = 0;
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        if (static_cast<std::int64_t>(k * sharing + rank) * N < args.columns) sum += sum_of(held[k]);
      }
      mean = row_sum<whole_block>(sum, &BlockSums<W>::sum) * inverse_columns;
    }
    W squares = 0;
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const std::int64_t column = static_cast<std::int64_t>(k * sharing + rank) * N;
      if (column < args.columns) squares += squares_of(held[k], args.columns - column, mean);
    }
    const W rstd = rstd_of(row_sum<whole_block>(squares, &BlockSums<W>::squares) * inverse_columns, args);
    if (rank == 0) store_statistics(args, row, mean, rstd);
    T* to = static_cast<T*>(args.y) + row * args.y_stride;
    // Hides that the columns repeat those of the loops above: the compiler would keep each comparison's result in a
    // register that the row needs.
    int again = rank;
    asm volatile("" : "+r"(again));
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const std::int64_t column = static_cast<std::int64_t>(k * sharing + again) * N;
      if (column >= args.columns) break;
      store_part(to + column, args.columns - column, normalized<T, P, N>(held[k], args, column, mean, rstd));
    }
    if constexpr (whole_block) separate_rows(args);
  }
}

/// Rows of any length, a block per row. A thread reads only the sums that it stored.
template <class T, class P, int N, bool adds>
__global__ void __launch_bounds__(1024) long_forward_kernel(LayerNormForwardArgs args) {
  using W = Wide<T>;
  const std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * N;
  const std::int64_t step = static_cast<std::int64_t>(blockDim.x) * N;
  const W inverse_columns = W(1) / static_cast<W>(args.columns);
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const T* from = static_cast<const T*>(args.x) + row * args.x_stride;
    W sum = 0;
    if constexpr (adds) {
      const T* residual_row = static_cast<const T*>(args.residual) + row * args.residual_stride;
      T* sum_row = static_cast<T*>(args.sum) + row * args.sum_stride;
      for (std::int64_t i = first; i < args.columns; i += step) {
        const auto x = load_part<N>(from + i, args.columns - i, T{});
        const auto stored = with_residual(x, load_part<N>(residual_row + i, args.columns - i, T{}));
        store_part(sum_row + i, args.columns - i, stored);
        sum += sum_of(as_loaded(stored));
      }
      from = sum_row;
    } else if (args.mean != nullptr) {
      for (std::int64_t i = first; i < args.columns; i += step)
        sum += sum_of(load_part<N>(from + i, args.columns - i, T{}));
    }
    const W mean = args.mean != nullptr ? row_sum<true>(sum, &BlockSums<W>::sum) * inverse_columns : W(0);
    W squares = 0;
    for (std::int64_t i = first; i < args.columns; i += step) {
      squares += squares_of(load_part<N>(from + i, args.columns - i, T{}), args.columns - i, mean);
    }
    const W rstd = rstd_of(row_sum<true>(squares, &BlockSums<W>::squares) * inverse_columns, args);
    if (threadIdx.x == 0) store_statistics(args, row, mean, rstd);
    T* to = static_cast<T*>(args.y) + row * args.y_stride;
    for (std::int64_t i = first; i < args.columns; i += step) {
      const auto x = load_part<N>(from + i, args.columns - i, T{});
      store_part(to + i, args.columns - i, normalized<T, P, N>(x, args, i, mean, rstd));
    }
    separate_rows(args);
  }
}

template <class T, class P, int N, bool adds>
void launch_packs(const LayerNormForwardArgs& args, cudaStream_t stream) {
  if (args.columns <= warp_lanes * held_elements<T>) {
    const Grid grid{blocks_for(args.rows, warp_kernel_threads / warp_lanes), warp_kernel_threads};
    return launch(forward_kernel<T, P, N, false, adds>, grid, stream, args);
  }
  const Grid grid{blocks_for(args.rows, 1), 1024};
  if (args.columns > block_kernel_threads * held_elements<T>)
    return launch(long_forward_kernel<T, P, N, adds>, grid, stream, args);
  const std::int64_t per_warp = warp_lanes * held_elements<T>;
  const Grid fitted{grid.blocks, static_cast<int>((args.columns + per_warp - 1) / per_warp) * warp_lanes};
  launch(forward_kernel<T, P, N, true, adds>, fitted, stream, args);
}

template <class T, class P, bool adds>
void launch_typed(const LayerNormForwardArgs& args, cudaStream_t stream) {
  constexpr int n = pack_elements<T>;
  const bool wide = packs_fit<T>(args.x, args.rows, args.x_stride, n) &&
                    packs_fit<T>(args.y, args.rows, args.y_stride, n) && packs_fit<P>(args.gamma, 1, 0, n) &&
                    (args.beta == nullptr || packs_fit<P>(args.beta, 1, 0, n)) &&
                    (!adds || (packs_fit<T>(args.residual, args.rows, args.residual_stride, n) &&
                               packs_fit<T>(args.sum, args.rows, args.sum_stride, n)));
  if (wide) {
    launch_packs<T, P, n, adds>(args, stream);
  } else {
    launch_packs<T, P, 1, adds>(args, stream);
  }
}

template <bool adds>
void launch_any(const LayerNormForwardArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    if (args.parameter == args.data) return launch_typed<T, T, adds>(args, stream);
    if constexpr (sizeof(T) < sizeof(double)) {
      if (args.parameter == Element::f32) return launch_typed<T, float, adds>(args, stream);
    }
    throw std::logic_error("layer_norm_forward: parameters must be f32 or have the data's type");
  });
}

}  // namespace

void launch_layer_norm_forward(const LayerNormForwardArgs& args, cudaStream_t stream) {
  launch_any<false>(args, stream);
}

void launch_residual_norm_forward(const LayerNormForwardArgs& args, cudaStream_t stream) {
  launch_any<true>(args, stream);
}

}  // namespace gpubench::cuda
