// With xhat = (x - mean) rstd and h = dy gamma, per row of n:
//   dx = rstd (h - sum(h) / n - xhat sum(h xhat) / n) + dr,   dgamma = sum over rows of dy xhat,   dbeta = sum of dy
// RMS norm has no mean: xhat = x rstd, without sum(h) and dbeta. Only residual_norm_backward has dr; separate kernels
// save registers for the others.
//
// A row is read once, into registers. Threads keep their columns from row to row and sum the parameter gradients in
// registers; a block writes its sums once.
// Rows of up to 1024 elements belong to a warp (no barrier), up to 16384 to a block (f64: 256 and 4096). Longer rows
// are read twice, with sums in scratch memory.
#include <algorithm>

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/norm_columns.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/products.h"
#include "reference/cuda/kernels/reduce.cuh"
#include "reference/cuda/kernels/rows.h"

namespace gpubench::cuda {
namespace {

/// Row elements per lane (a warp per row) and per thread (a block per row), limited by registers: sums take as many as
/// rows of f32; in f64 both take twice as many. `warps`: resident warps per multiprocessor.
struct Held {
  int warp, block, warps;
  [[nodiscard]] constexpr int warp_columns() const { return warp_lanes * warp; }
  [[nodiscard]] constexpr int block_columns() const { return 1024 * block; }
};
constexpr Held held_in_f64{8, 4, 12};
constexpr Held held_in_f32{32, 16, 8};       // 255 registers per thread
constexpr Held held_in_16_bits{32, 16, 12};  // 168
template <class T>
constexpr Held held = sizeof(T) == sizeof(double)  ? held_in_f64
                      : sizeof(T) == sizeof(float) ? held_in_f32
                                                   : held_in_16_bits;

Held held_of(Element data) {
  if (data == Element::f64) return held_in_f64;
  return data == Element::f32 ? held_in_f32 : held_in_16_bits;
}

/// Number of parameter gradients: dgamma, and dbeta with a mean.
__host__ __device__ __forceinline__ int sums_of(const LayerNormBackwardArgs& args) {
  return args.mean != nullptr ? 2 : 1;
}

template <class W>
__device__ __forceinline__ W mean_of(const LayerNormBackwardArgs& args, std::int64_t row) {
  return args.mean != nullptr ? load(static_cast<const W*>(args.mean) + row) : W(0);
}

template <class W>
struct BlockRowSums {
  PerWarp<W> h, h_xhat;
};

/// Over the block. Rows alternate between two scratches, which saves a barrier per row.
template <class W>
__device__ __forceinline__ RowSums<W> block_row_sums(RowSums<W> sums, BlockRowSums<W>& scratch) {
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  sums = {warp_sum(sums.h), warp_sum(sums.h_xhat)};
  if (lane == 0) {
    scratch.h.at[threadIdx.x / warp_lanes] = sums.h;
    scratch.h_xhat.at[threadIdx.x / warp_lanes] = sums.h_xhat;
  }
  __syncthreads();
  const bool mine = lane < static_cast<int>(blockDim.x) / warp_lanes;
  return {warp_sum(mine ? static_cast<W>(scratch.h.at[lane]) : W(0)),
          warp_sum(mine ? static_cast<W>(scratch.h_xhat.at[lane]) : W(0))};
}

template <class W, int columns>
struct WarpTotals {
  Shared<W> at[2][columns];
};

/// Warps add their sums in order: deterministic.
template <int warps, class C, int N, int packs>
__device__ __forceinline__ void store_warp_totals(const C& mine, const LayerNormBackwardArgs& args) {
  using W = typename C::W;
  auto& totals = shared_storage<WarpTotals<W, warp_lanes * packs * N>>();
  for (int warp = 0; warp < warps; ++warp) {
    if (static_cast<int>(threadIdx.x) / warp_lanes == warp) {
#pragma unroll
      for (int k = 0; k < packs; ++k) {
#pragma unroll
        for (int i = 0; i < N; ++i) {
          // Element i of a lane's pack k; neighbouring lanes access neighbouring cells.
          const int cell = (k * N + i) * warp_lanes + mine.rank;
          totals.at[0][cell] = warp == 0 ? mine.dgamma[k * N + i] : totals.at[0][cell] + mine.dgamma[k * N + i];
          totals.at[1][cell] = warp == 0 ? mine.dbeta[k * N + i] : totals.at[1][cell] + mine.dbeta[k * N + i];
        }
      }
    }
    __syncthreads();
  }
  W* partial = static_cast<W*>(args.partial) + static_cast<std::int64_t>(blockIdx.x) * sums_of(args) * args.columns;
  for (int column = static_cast<int>(threadIdx.x); column < args.columns; column += warps * warp_lanes) {
    const int pack = column / N;
    const int cell = (pack / warp_lanes * N + column % N) * warp_lanes + pack % warp_lanes;
    store<W>(partial + column, totals.at[0][cell]);
    if (sums_of(args) > 1) store<W>(partial + args.columns + column, totals.at[1][cell]);
  }
}

template <class T, class P, int N, bool residual>
__global__ void __launch_bounds__(held<T>.warps* warp_lanes, 1) warp_backward_kernel(LayerNormBackwardArgs args) {
  using W = Wide<T>;
  constexpr int packs = held<T>.warp / N;
  constexpr int warps = held<T>.warps;
  const W inverse_columns = W(1) / static_cast<W>(args.columns);
  Columns<T, P, N, packs, residual> mine;
  mine.sharing = warp_lanes;
  mine.rank = static_cast<int>(threadIdx.x) % warp_lanes;
  mine.begin();
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * warps + threadIdx.x / warp_lanes;
  for (std::int64_t row = first; row < args.rows; row += static_cast<std::int64_t>(gridDim.x) * warps) {
    const W mean = mean_of<W>(args, row);
    const W rstd = load(static_cast<const W*>(args.rstd) + row);
    mine.read(args, row);
    const RowSums<W> sums = mine.add(args, mean, rstd);
    const RowSums<W> means{warp_sum(sums.h) * (args.mean != nullptr ? inverse_columns : W(0)),
                           warp_sum(sums.h_xhat) * inverse_columns};
    mine.write(args, row, mean, rstd, means);
  }
  store_warp_totals<warps, Columns<T, P, N, packs, residual>, N, packs>(mine, args);
}

template <class W>
struct TwoTurns {
  BlockRowSums<W> at[2];
};

/// `max_threads` sets the registers per thread: 128 for 512, 80 for 768, 64 for 1024.
template <class T, class P, int N, bool residual, int max_threads>
__global__ void __launch_bounds__(max_threads) block_backward_kernel(LayerNormBackwardArgs args) {
  using W = Wide<T>;
  constexpr int packs = held<T>.block / N;
  const W inverse_columns = W(1) / static_cast<W>(args.columns);
  auto& scratch = shared_storage<TwoTurns<W>>();
  Columns<T, P, N, packs, residual> mine;
  mine.sharing = static_cast<int>(blockDim.x);
  mine.rank = static_cast<int>(threadIdx.x);
  mine.begin();
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const W mean = mean_of<W>(args, row);
    const W rstd = load(static_cast<const W*>(args.rstd) + row);
    mine.read(args, row);
    const RowSums<W> sums = block_row_sums(mine.add(args, mean, rstd), scratch.at[turn]);
    mine.write(args, row, mean, rstd,
               {args.mean != nullptr ? sums.h * inverse_columns : W(0), sums.h_xhat * inverse_columns});
    turn = 1 - turn;
  }
  W* partial = static_cast<W*>(args.partial) + static_cast<std::int64_t>(blockIdx.x) * sums_of(args) * args.columns;
#pragma unroll
  for (int k = 0; k < packs; ++k) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const std::int64_t column = mine.column(k) + i;
      if (column >= args.columns) continue;
      store(partial + column, mine.dgamma[k * N + i]);
      if (sums_of(args) > 1) store(partial + args.columns + column, mine.dbeta[k * N + i]);
    }
  }
}

/// Rows of any length. Only one thread reads and writes a column of the block's sums.
template <class T, class P>
__global__ void __launch_bounds__(1024) long_backward_kernel(LayerNormBackwardArgs args) {
  using W = Wide<T>;
  const W inverse_columns = W(1) / static_cast<W>(args.columns);
  auto& scratch = shared_storage<TwoTurns<W>>();
  W* dgamma = static_cast<W*>(args.partial) + static_cast<std::int64_t>(blockIdx.x) * sums_of(args) * args.columns;
  W* dbeta = dgamma + args.columns;
  int turn = 0;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const W mean = mean_of<W>(args, row);
    const W rstd = load(static_cast<const W*>(args.rstd) + row);
    const T* dy = static_cast<const T*>(args.dy) + row * args.dy_stride;
    const T* x = static_cast<const T*>(args.x) + row * args.x_stride;
    const T* dr = args.dr != nullptr ? static_cast<const T*>(args.dr) + row * args.dr_stride : nullptr;
    RowSums<W> sums{0, 0};
    for (std::int64_t i = threadIdx.x; i < args.columns; i += blockDim.x) {
      const W slope = widen(load(dy + i));
      const W xhat = (widen(load(x + i)) - mean) * rstd;
      const W h = rounded_if<T>(args.rounds, slope * widen(load(static_cast<const P*>(args.gamma) + i)));
      sums.h += h;
      sums.h_xhat += h * xhat;
      store(dgamma + i, (row == blockIdx.x ? W(0) : load(dgamma + i)) + slope * rounded_if<T>(args.rounds, xhat));
      if (sums_of(args) > 1) store(dbeta + i, (row == blockIdx.x ? W(0) : load(dbeta + i)) + slope);
    }
    sums = block_row_sums(sums, scratch.at[turn]);
    const RowSums<W> means{args.mean != nullptr ? sums.h * inverse_columns : W(0), sums.h_xhat * inverse_columns};
    for (std::int64_t i = threadIdx.x; i < args.columns; i += blockDim.x) {
      const auto gamma = load_pack<1>(static_cast<const P*>(args.gamma) + i);
      Loaded<T, 1> added;
      if (dr != nullptr) added = load_pack<1>(dr + i);
      store_pack(static_cast<T*>(args.dx) + row * args.dx_stride + i,
                 dx_of(load_pack<1>(dy + i), load_pack<1>(x + i), gamma, mean, rstd, means, args.rounds,
                       dr != nullptr ? &added : nullptr));
    }
    turn = 1 - turn;
  }
}

int block_threads(Held held, std::int64_t columns) {
  const std::int64_t per_warp = std::int64_t{warp_lanes} * held.block;
  return static_cast<int>(std::min<std::int64_t>(32, (columns + per_warp - 1) / per_warp)) * warp_lanes;
}

template <class T, class P, int N, bool residual>
void launch_packs(const LayerNormBackwardArgs& args, cudaStream_t stream) {
  if (args.columns <= held<T>.warp_columns()) {
    return launch(warp_backward_kernel<T, P, N, residual>, Grid{args.parts, held<T>.warps * warp_lanes}, stream, args);
  }
  const Grid grid{args.parts, block_threads(held<T>, args.columns)};
  if (args.columns > held<T>.block_columns()) return launch(long_backward_kernel<T, P>, grid, stream, args);
  if (grid.threads <= 512) return launch(block_backward_kernel<T, P, N, residual, 512>, grid, stream, args);
  if (grid.threads <= 768) return launch(block_backward_kernel<T, P, N, residual, 768>, grid, stream, args);
  launch(block_backward_kernel<T, P, N, residual, 1024>, grid, stream, args);
}

template <class T, class P, bool residual>
void launch_typed(const LayerNormBackwardArgs& args, cudaStream_t stream) {
  constexpr int n = pack_elements<T>;
  const bool wide = packs_fit<T>(args.dy, args.rows, args.dy_stride, n) &&
                    packs_fit<T>(args.x, args.rows, args.x_stride, n) &&
                    packs_fit<T>(args.dx, args.rows, args.dx_stride, n) && packs_fit<P>(args.gamma, 1, 0, n) &&
                    (!residual || packs_fit<T>(args.dr, args.rows, args.dr_stride, n));
  if (wide) {
    launch_packs<T, P, n, residual>(args, stream);
  } else {
    launch_packs<T, P, 1, residual>(args, stream);
  }
}

template <class T, class P>
void launch_typed(const LayerNormBackwardArgs& args, cudaStream_t stream) {
  if (args.dr != nullptr) return launch_typed<T, P, true>(args, stream);
  launch_typed<T, P, false>(args, stream);
}

}  // namespace

std::int64_t layer_norm_backward_parts(Element data, std::int64_t rows, std::int64_t columns, int multiprocessors) {
  const Held held = held_of(data);
  if (columns <= held.warp_columns()) {
    return std::clamp<std::int64_t>((rows + held.warps - 1) / held.warps, 1, multiprocessors);
  }
  // 512 threads per multiprocessor keep 32 kB in flight; more blocks would write more sums.
  const std::int64_t blocks = std::int64_t{multiprocessors} * std::max(1, 512 / block_threads(held, columns));
  return std::clamp<std::int64_t>(rows, 1, blocks);
}

std::int64_t layer_norm_backward_scratch(Element data, std::int64_t parts, std::int64_t columns) {
  return parts * 2 * columns * static_cast<std::int64_t>(data == Element::f64 ? sizeof(double) : sizeof(float));
}

void launch_layer_norm_backward(const LayerNormBackwardArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    if (args.parameter == args.data) return launch_typed<T, T>(args, stream);
    if constexpr (sizeof(T) < sizeof(double)) {
      if (args.parameter == Element::f32) return launch_typed<T, float>(args, stream);
    }
    throw std::logic_error("layer_norm_backward: parameters must be f32 or have the data's type");
  });
  launch_partial_sum(
      {args.parameter, args.partial, args.parts, sums_of(args) * args.columns, args.columns, args.dgamma, args.dbeta},
      stream);
}

}  // namespace gpubench::cuda
