// A thread's part of a row, and its sums over rows, in layer_norm_backward.
#pragma once

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/rows.h"

namespace gpubench::cuda {

/// Sums over a row that dx needs.
template <class W>
struct RowSums {
  W h, h_xhat;
};

template <class T, class P, int N>
__device__ __forceinline__ Pack<T, N> dx_of(const Loaded<T, N>& dy, const Loaded<T, N>& x, const Loaded<P, N>& gamma,
                                            Wide<T> mean, Wide<T> rstd, RowSums<Wide<T>> means, bool rounds,
                                            const Loaded<T, N>* dr) {
  Pack<T, N> dx;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const Wide<T> xhat = (widen(x[i]) - mean) * rstd;
    const Wide<T> h = rounded_if<T>(rounds, widen(dy[i]) * widen(gamma[i]));
    const Wide<T> of_norm = rstd * ((h - means.h) - xhat * means.h_xhat);
    dx.at[i] = narrow<T>(dr != nullptr ? of_norm + widen((*dr)[i]) : of_norm);
  }
  return dx;
}

/// A thread's elements of a row and its column sums. Gamma is loaded from the L1 cache for every row, for lack of
/// registers.
template <class T, class P, int N, int packs, bool residual>
struct Columns {
  using W = Wide<T>;
  Loaded<T, N> dy[packs], x[packs], dr[residual ? packs : 1];
  W dgamma[packs * N], dbeta[packs * N];
  int sharing, rank;  // threads per row, and this thread's index

  [[nodiscard]] __device__ __forceinline__ std::int64_t column(int k) const {
    return static_cast<std::int64_t>(k * sharing + rank) * N;
  }

  __device__ __forceinline__ void begin() {
#pragma unroll
    for (int i = 0; i < packs * N; ++i) {
      dgamma[i] = 0;
      dbeta[i] = 0;
    }
  }

  [[nodiscard]] __device__ __forceinline__ Loaded<P, N> gamma(const LayerNormBackwardArgs& args, int k) const {
    return load_part<N>(static_cast<const P*>(args.gamma) + column(k), args.columns - column(k), P{});
  }

  __device__ __forceinline__ void read(const LayerNormBackwardArgs& args, std::int64_t row) {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const std::int64_t at = column(k);
      if (at >= args.columns) break;
      dy[k] = load_part<N>(static_cast<const T*>(args.dy) + row * args.dy_stride + at, args.columns - at, T{});
      x[k] = load_part<N>(static_cast<const T*>(args.x) + row * args.x_stride + at, args.columns - at, T{});
    }
    if constexpr (residual) {  // loaded last, as it is used last
#pragma unroll
      for (int k = 0; k < packs; ++k) {
        const std::int64_t at = column(k);
        if (at >= args.columns) break;
        dr[k] = load_part<N>(static_cast<const T*>(args.dr) + row * args.dr_stride + at, args.columns - at, T{});
      }
    }
  }

  /// Elements beyond the row have dy = gamma = 0 and add nothing.
  __device__ __forceinline__ RowSums<W> add(const LayerNormBackwardArgs& args, W mean, W rstd) {
    RowSums<W> sums{0, 0};
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      if (column(k) >= args.columns) break;
      const Loaded<P, N> gammas = gamma(args, k);
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const W slope = widen(dy[k][i]);
        const W xhat = (widen(x[k][i]) - mean) * rstd;
        const W h = rounded_if<T>(args.rounds, slope * widen(gammas[i]));
        sums.h += h;
        sums.h_xhat += h * xhat;
        dgamma[k * N + i] += slope * rounded_if<T>(args.rounds, xhat);
        dbeta[k * N + i] += slope;
      }
    }
    return sums;
  }

  __device__ __forceinline__ void write(const LayerNormBackwardArgs& args, std::int64_t row, W mean, W rstd,
                                        RowSums<W> means) const {
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const std::int64_t at = column(k);
      if (at >= args.columns) break;
      store_part(static_cast<T*>(args.dx) + row * args.dx_stride + at, args.columns - at,
                 dx_of(dy[k], x[k], gamma(args, k), mean, rstd, means, args.rounds, residual ? &dr[k] : nullptr));
    }
  }
};

}  // namespace gpubench::cuda
