// A thread computes a pack of channels of one position: y from its window, dx from the windows that contain it, which
// makes gradient sums deterministic.
#include "reference/cuda/kernels/images.h"
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {
namespace {

constexpr int threads = 256;

struct Range {
  std::int64_t begin, end;
};

__device__ __forceinline__ std::int64_t first_of(const PoolAxisArgs& axis, std::int64_t window) {
  return window * axis.stride - axis.pad;
}
__device__ __forceinline__ Range elements_of(const PoolAxisArgs& axis, std::int64_t window) {
  const std::int64_t first = first_of(axis, window), past = first + axis.window;
  return {first > 0 ? first : 0, past < axis.extent ? past : axis.extent};
}
/// Divisor of a window: its elements in the image and, if counted, in the padding. The last window may extend beyond
/// that.
__device__ __forceinline__ std::int64_t counted_of(const PoolAxisArgs& axis, std::int64_t window, bool counts_padding) {
  const std::int64_t first = first_of(axis, window), past = first + axis.window;
  const std::int64_t pad = counts_padding ? axis.pad : 0;
  return (past < axis.extent + pad ? past : axis.extent + pad) - (first > -pad ? first : -pad);
}
__device__ __forceinline__ Range windows_of(const PoolAxisArgs& axis, std::int64_t element) {
  const std::int64_t past = element + axis.pad - axis.window;
  const std::int64_t last = (element + axis.pad) / axis.stride;
  return {past < 0 ? 0 : past / axis.stride + 1, last < axis.outputs ? last + 1 : axis.outputs};
}

struct Position {
  std::int64_t image, row, column;
};

__device__ __forceinline__ Position position_of(std::int64_t linear, std::int64_t rows, std::int64_t columns) {
  const std::int64_t line = linear / columns;
  return {line / rows, line % rows, linear % columns};
}

__device__ __forceinline__ std::int64_t place_of(const Position& at, std::int64_t rows, std::int64_t columns,
                                                 std::int64_t channels) {
  return ((at.image * rows + at.row) * columns + at.column) * channels;
}

template <class W>
__device__ __forceinline__ W reciprocal(const PoolArgs& args, std::int64_t row, std::int64_t column) {
  return static_cast<W>(1) / static_cast<W>(counted_of(args.vertical, row, args.counts_padding) *
                                            counted_of(args.horizontal, column, args.counts_padding));
}

// Reductions over a window's elements or an element's windows: begin(), one call per item, then write().

template <class T, int N>
struct Largest {
  static constexpr bool forward = true;
  Pack<T, N> best;
  Pack<std::uint8_t, N> index;
  bool any = false;

  __device__ __forceinline__ void add(const PoolArgs&, const Loaded<T, N>& x, std::int64_t, std::uint8_t tap,
                                      const Position&) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const Wide<T> value = widen(x[i]);
      if (any && !(value > widen(best.at[i])) && value == value) continue;  // NaN is the maximum
      best.at[i] = x[i];
      index.at[i] = tap;
    }
    any = true;
  }
  __device__ __forceinline__ void write(const PoolArgs& args, std::int64_t place, const Position&) const {
    store_pack(static_cast<T*>(args.to) + place, best);
    store_pack(args.index + place, index);
  }
};

template <class T, int N>
struct Sum {
  Wide<T> sum[N] = {};

  __device__ __forceinline__ void write_scaled(const PoolArgs& args, std::int64_t place, Wide<T> factor) const {
    Pack<T, N> pack;
#pragma unroll
    for (int i = 0; i < N; ++i) pack.at[i] = narrow<T>(sum[i] * factor);
    store_pack(static_cast<T*>(args.to) + place, pack);
  }
};

template <class T, int N>
struct Chosen : Sum<T, N> {
  static constexpr bool forward = false;

  __device__ __forceinline__ void add(const PoolArgs& args, const Loaded<T, N>& dy, std::int64_t place,
                                      std::uint8_t tap, const Position&) {
    const Loaded<std::uint8_t, N> chosen = load_pack<N>(args.chosen + place);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (chosen[i] == tap) this->sum[i] += widen(dy[i]);
    }
  }
  __device__ __forceinline__ void write(const PoolArgs& args, std::int64_t place, const Position&) const {
    this->write_scaled(args, place, 1);
  }
};

template <class T, int N>
struct Mean : Sum<T, N> {
  static constexpr bool forward = true;

  __device__ __forceinline__ void add(const PoolArgs&, const Loaded<T, N>& x, std::int64_t, std::uint8_t,
                                      const Position&) {
#pragma unroll
    for (int i = 0; i < N; ++i) this->sum[i] += widen(x[i]);
  }
  __device__ __forceinline__ void write(const PoolArgs& args, std::int64_t place, const Position& at) const {
    this->write_scaled(args, place, reciprocal<Wide<T>>(args, at.row, at.column));
  }
};

template <class T, int N>
struct Spread : Sum<T, N> {
  static constexpr bool forward = false;

  __device__ __forceinline__ void add(const PoolArgs& args, const Loaded<T, N>& dy, std::int64_t, std::uint8_t,
                                      const Position& window) {
    const auto factor = reciprocal<Wide<T>>(args, window.row, window.column);
#pragma unroll
    for (int i = 0; i < N; ++i) this->sum[i] += widen(dy[i]) * factor;
  }
  __device__ __forceinline__ void write(const PoolArgs& args, std::int64_t place, const Position&) const {
    this->write_scaled(args, place, 1);
  }
};

template <class T, int N, template <class, int> class Result>
__global__ void __launch_bounds__(threads) pool_kernel(PoolArgs args) {
  using Made = Result<T, N>;
  const PoolAxisArgs &v = args.vertical, &h = args.horizontal;
  // Extents of the result, then of the input.
  const std::int64_t rows = Made::forward ? v.outputs : v.extent, columns = Made::forward ? h.outputs : h.extent;
  const std::int64_t read_rows = Made::forward ? v.extent : v.outputs;
  const std::int64_t read_columns = Made::forward ? h.extent : h.outputs;
  const std::int64_t packs = args.channels / N;
  const std::int64_t items = args.images * rows * columns * packs;
  const auto* from = static_cast<const T*>(args.from);
  for (std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; item < items;
       item += static_cast<std::int64_t>(gridDim.x) * threads) {
    const std::int64_t channel = item % packs * N;
    const Position at = position_of(item / packs, rows, columns);
    const Range r = Made::forward ? elements_of(v, at.row) : windows_of(v, at.row);
    const Range c = Made::forward ? elements_of(h, at.column) : windows_of(h, at.column);
    Made made;
    for (std::int64_t row = r.begin; row < r.end; ++row) {
      for (std::int64_t column = c.begin; column < c.end; ++column) {
        const Position other{at.image, row, column};
        const std::int64_t place = place_of(other, read_rows, read_columns, args.channels) + channel;
        const std::int64_t down = Made::forward ? row - first_of(v, at.row) : at.row - first_of(v, row);
        const std::int64_t across = Made::forward ? column - first_of(h, at.column) : at.column - first_of(h, column);
        made.add(args, load_pack<N>(from + place), place, static_cast<std::uint8_t>(down * h.window + across), other);
      }
    }
    made.write(args, item * N, at);  // items are in the order of positions and channels
  }
}

template <template <class, int> class Result>
void launch_pool(const PoolArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr int n = pack_elements<T>;
    const auto fits = [&](const void* data) { return packs_fit<T>(data, 1, 0, n); };
    const auto index_fits = [&](const void* data) {
      return reinterpret_cast<std::uintptr_t>(data) % n == 0;  // n bytes per pack
    };
    const PoolAxisArgs &v = args.vertical, &h = args.horizontal;
    const std::int64_t positions = args.images * (Result<T, 1>::forward ? v.outputs * h.outputs : v.extent * h.extent);
    if (args.channels % n == 0 && fits(args.from) && fits(args.to) && index_fits(args.index) &&
        index_fits(args.chosen)) {
      launch(pool_kernel<T, n, Result>, Grid{blocks_for(positions * (args.channels / n), threads), threads}, stream,
             args);
    } else {
      launch(pool_kernel<T, 1, Result>, Grid{blocks_for(positions * args.channels, threads), threads}, stream, args);
    }
  });
}

}  // namespace

void launch_max_pool_forward(const PoolArgs& args, cudaStream_t stream) { launch_pool<Largest>(args, stream); }
void launch_max_pool_backward(const PoolArgs& args, cudaStream_t stream) { launch_pool<Chosen>(args, stream); }
void launch_average_pool_forward(const PoolArgs& args, cudaStream_t stream) { launch_pool<Mean>(args, stream); }
void launch_average_pool_backward(const PoolArgs& args, cudaStream_t stream) { launch_pool<Spread>(args, stream); }

}  // namespace gpubench::cuda
