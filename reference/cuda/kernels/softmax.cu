// A warp per row, or a block for long rows. Up to packs_in_flight packs per thread stay in registers; longer rows are
// read again.
#include "reference/cuda/kernels/rows.h"

#include <algorithm>

#include "reference/cuda/kernels/softmax.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads_of_warps = 128;
constexpr int max_threads = 512;

/// A thread's index among those of its row, and the rows that it handles.
struct RowShare {
  int rank, sharing;
  std::int64_t first_row, rows_at_once;
};

template <bool whole_block>
__device__ __forceinline__ RowShare row_share() {
  const int sharing = whole_block ? static_cast<int>(blockDim.x) : warp_lanes;
  return {static_cast<int>(threadIdx.x) % sharing, sharing,
          (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / sharing,
          static_cast<std::int64_t>(gridDim.x) * (blockDim.x / static_cast<unsigned>(sharing))};
}

/// This thread's packs from pack `first` on; `filler` beyond the row.
template <class T, int N>
__device__ __forceinline__ void load_turn(const T* row, std::int64_t columns, std::int64_t first, int sharing, T filler,
                                          Loaded<T, N> (&pack)[packs_in_flight]) {
#pragma unroll
  for (int k = 0; k < packs_in_flight; ++k) {
    const std::int64_t column = (first + static_cast<std::int64_t>(k) * sharing) * N;
    pack[k] = load_part<N>(row + column, columns - column, filler);
  }
}

template <class T, int N, bool whole_block>
__global__ void __launch_bounds__(whole_block ? max_threads : threads_of_warps)
    softmax_forward_kernel(SoftmaxArgs args) {
  using W = Wide<T>;
  const RowShare share = row_share<whole_block>();
  const std::int64_t packs = (args.columns + N - 1) / N,
                     turn = static_cast<std::int64_t>(packs_in_flight) * share.sharing;
  const T filler = narrow<T>(W(-INFINITY));
  for (std::int64_t row = share.first_row; row < args.rows; row += share.rows_at_once) {
    const T* x = static_cast<const T*>(args.x) + row * args.x_stride;
    T* y = static_cast<T*>(args.to) + row * args.to_stride;
    Loaded<T, N> pack[packs_in_flight];
    Softmax<W> all;
    for (std::int64_t first = share.rank; first - share.rank < packs; first += turn) {
      load_turn<T, N>(x, args.columns, first, share.sharing, filler, pack);
      add_packs(pack, all);
    }
    if constexpr (whole_block) {
      all = block_softmax(all);
    } else {
      all = warp_softmax(all);
    }
    const W shift = shift_of(all.largest), factor = W(1) / all.sum;
    for (std::int64_t first = share.rank; first - share.rank < packs; first += turn) {
      if (packs > turn) load_turn<T, N>(x, args.columns, first, share.sharing, filler, pack);
#pragma unroll
      for (int k = 0; k < packs_in_flight; ++k) {
        const std::int64_t column = (first + static_cast<std::int64_t>(k) * share.sharing) * N;
        Pack<T, N> made;
#pragma unroll
        for (int i = 0; i < N; ++i) made.at[i] = narrow<T>(exp_of_difference(widen(pack[k][i]), shift) * factor);
        store_part(y + column, args.columns - column, made);
      }
    }
  }
}

template <class T, int N, bool whole_block>
__global__ void __launch_bounds__(whole_block ? max_threads : threads_of_warps)
    softmax_backward_kernel(SoftmaxArgs args) {
  using W = Wide<T>;
  const RowShare share = row_share<whole_block>();
  const std::int64_t packs = (args.columns + N - 1) / N,
                     turn = static_cast<std::int64_t>(packs_in_flight) * share.sharing;
  for (std::int64_t row = share.first_row; row < args.rows; row += share.rows_at_once) {
    const T* y = static_cast<const T*>(args.x) + row * args.x_stride;
    const T* dy = static_cast<const T*>(args.dy) + row * args.dy_stride;
    T* dx = static_cast<T*>(args.to) + row * args.to_stride;
    Loaded<T, N> of_y[packs_in_flight], of_dy[packs_in_flight];
    const auto load_both = [&](std::int64_t first) {
      load_turn<T, N>(y, args.columns, first, share.sharing, narrow<T>(W(0)), of_y);
      load_turn<T, N>(dy, args.columns, first, share.sharing, narrow<T>(W(0)), of_dy);
    };
    W projection = 0;
    for (std::int64_t first = share.rank; first - share.rank < packs; first += turn) {
      load_both(first);
#pragma unroll
      for (int k = 0; k < packs_in_flight; ++k) {
#pragma unroll
        for (int i = 0; i < N; ++i) projection += widen(of_y[k][i]) * widen(of_dy[k][i]);
      }
    }
    if constexpr (whole_block) {
      __syncthreads();  // all threads have read the previous row's values
      projection = block_sum(projection, shared_storage<PerWarp<W>>());
    } else {
      projection = warp_sum(projection);
    }
    for (std::int64_t first = share.rank; first - share.rank < packs; first += turn) {
      if (packs > turn) load_both(first);
#pragma unroll
      for (int k = 0; k < packs_in_flight; ++k) {
        const std::int64_t column = (first + static_cast<std::int64_t>(k) * share.sharing) * N;
        Pack<T, N> made;
#pragma unroll
        for (int i = 0; i < N; ++i) made.at[i] = narrow<T>(widen(of_y[k][i]) * (widen(of_dy[k][i]) - projection));
        store_part(dx + column, args.columns - column, made);
      }
    }
  }
}

template <int N, class LaunchWith>
void with_grid(const SoftmaxArgs& args, const LaunchWith& launch_with) {
  const std::int64_t per_warp = std::int64_t{warp_lanes} * N * packs_in_flight;
  if (args.columns <= per_warp) {
    const Grid grid{blocks_for(args.rows, threads_of_warps / warp_lanes), threads_of_warps};
    return launch_with(std::false_type{}, grid);
  }
  const std::int64_t warps =
      std::min<std::int64_t>((args.columns + per_warp - 1) / per_warp, max_threads / warp_lanes);
  launch_with(std::true_type{}, Grid{blocks_for(args.rows, 1), static_cast<int>(warps) * warp_lanes});
}

template <class LaunchWith>
void with_packs(const SoftmaxArgs& args, const LaunchWith& launch_with) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int n = pack_elements<T>;
    const auto fits = [&](const void* data, std::int64_t stride) {
      return data == nullptr || packs_fit<T>(data, args.rows, stride, n);
    };
    if (fits(args.x, args.x_stride) && fits(args.dy, args.dy_stride) && fits(args.to, args.to_stride)) {
      launch_with(type, std::integral_constant<int, n>{});
    } else {
      launch_with(type, std::integral_constant<int, 1>{});
    }
  });
}

}  // namespace

void launch_softmax_forward(const SoftmaxArgs& args, cudaStream_t stream) {
  with_packs(args, [&](auto type, auto n) {
    using T = typename decltype(type)::type;
    with_grid<n>(args, [&](auto block, Grid grid) { launch(softmax_forward_kernel<T, n, block>, grid, stream, args); });
  });
}

void launch_softmax_backward(const SoftmaxArgs& args, cudaStream_t stream) {
  with_packs(args, [&](auto type, auto n) {
    using T = typename decltype(type)::type;
    with_grid<n>(args,
                 [&](auto block, Grid grid) { launch(softmax_backward_kernel<T, n, block>, grid, stream, args); });
  });
}

}  // namespace gpubench::cuda
