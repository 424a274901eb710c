// A block per row (a warp for up to 1024 classes), one pass: each thread keeps the largest logit that it has seen and
// the sum of exp(logit - largest), rescaled when a larger one comes (Milakov and Gimelshein, arXiv 1805.02867). Rows of
// odd vocabularies (50257) begin at any element: single elements up to the first boundary of 16 bytes, then packs.
#include "reference/cuda/kernels/cross_entropy.h"

#include <algorithm>

#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {
namespace {

constexpr int warp_kernel_threads = 128;
constexpr std::int64_t warp_kernel_classes = 1024;
constexpr int packs_in_flight = 4;

/// sum of exp(x - largest) over what has been seen, in W: f32, or f64 for logits in f64.
template <class W>
struct Softmax {
  W largest, sum;
};

/// NaN and infinities spread as in exp(x - largest); nothing but -inf seen yet counts from 0.
template <class W>
__device__ __forceinline__ W shift_of(W largest) {
  return largest == W(-INFINITY) ? W(0) : largest;
}

template <class W>
__device__ __forceinline__ Softmax<W> joined(Softmax<W> a, Softmax<W> b) {
  const W largest = a.largest > b.largest ? a.largest : b.largest;
  const W shift = shift_of(largest);
  return {largest, a.sum * full_exp(shift_of(a.largest) - shift) + b.sum * full_exp(shift_of(b.largest) - shift)};
}

template <class W>
__device__ __forceinline__ Softmax<W> warp_softmax(Softmax<W> value) {
#pragma unroll
  for (int offset = warp_lanes / 2; offset > 0; offset /= 2) {
    const Softmax<W> other{__shfl_xor_sync(whole_warp, value.largest, offset),
                           __shfl_xor_sync(whole_warp, value.sum, offset)};
    // The same order in both lanes, so that both get the same bits.
    const bool lower = (threadIdx.x & static_cast<unsigned>(offset)) == 0;
    value = lower ? joined(value, other) : joined(other, value);
  }
  return value;
}

template <class W>
struct SoftmaxScratch {
  PerWarp<W> largest, sum;
};

template <class W>
__device__ __forceinline__ Softmax<W> block_softmax(Softmax<W> value) {
  auto& scratch = shared_storage<SoftmaxScratch<W>>();
  const int lane = static_cast<int>(threadIdx.x) % warp_lanes;
  value = warp_softmax(value);
  __syncthreads();  // the row before has been read
  if (lane == 0) {
    scratch.largest.at[threadIdx.x / warp_lanes] = value.largest;
    scratch.sum.at[threadIdx.x / warp_lanes] = value.sum;
  }
  __syncthreads();
  if (lane < static_cast<int>(blockDim.x) / warp_lanes) {
    value = {scratch.largest.at[lane], scratch.sum.at[lane]};
  } else {
    value = {W(-INFINITY), W(0)};
  }
  return warp_softmax(value);
}

template <class T, int N>
__device__ __forceinline__ void add_pack(const Pack<T, N>& pack, Softmax<Wide<T>>& seen) {
  Wide<T> largest = seen.largest;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const Wide<T> x = widen(pack.at[i]);
    largest = x > largest ? x : largest;
  }
  if (largest > seen.largest) {
    seen.sum *= full_exp(shift_of(seen.largest) - shift_of(largest));
    seen.largest = largest;
  }
  const Wide<T> shift = shift_of(seen.largest);
#pragma unroll
  for (int i = 0; i < N; ++i) seen.sum += full_exp(widen(pack.at[i]) - shift);
}

/// Elements of the row before its first boundary of 16 bytes.
template <class T>
__device__ __forceinline__ int head_of(const T* row, std::int64_t classes) {
  const auto beyond = static_cast<int>(reinterpret_cast<std::uintptr_t>(row) % pack_bytes / sizeof(T));
  const int head = beyond == 0 ? 0 : pack_elements<T> - beyond;
  return head < classes ? head : static_cast<int>(classes);
}

/// What this thread, one of `sharing`, sees of the row.
template <class T>
__device__ __forceinline__ Softmax<Wide<T>> seen_of(const T* row, std::int64_t classes, int rank, int sharing) {
  constexpr int n = pack_elements<T>;
  Softmax<Wide<T>> seen{Wide<T>(-INFINITY), Wide<T>(0)};
  const int head = head_of(row, classes);
  if (rank < head) add_pack(load_pack<1>(row + rank), seen);
  const T* body = row + head;
  const std::int64_t packs = (classes - head) / n;
  std::int64_t pack = rank;
  for (; pack + static_cast<std::int64_t>(packs_in_flight - 1) * sharing < packs;
       pack += static_cast<std::int64_t>(packs_in_flight) * sharing) {
    Pack<T, n> loaded[packs_in_flight];
#pragma unroll
    for (int k = 0; k < packs_in_flight; ++k)
      loaded[k] = load_pack<n>(body + (pack + static_cast<std::int64_t>(k) * sharing) * n);
#pragma unroll
    for (int k = 0; k < packs_in_flight; ++k) add_pack(loaded[k], seen);
  }
  for (; pack < packs; pack += sharing) add_pack(load_pack<n>(body + pack * n), seen);
  for (std::int64_t i = packs * n + rank; i < classes - head; i += sharing) add_pack(load_pack<1>(body + i), seen);
  return seen;
}

template <class T, bool whole_block>
__global__ void __launch_bounds__(whole_block ? 1024 : warp_kernel_threads)
    forward_kernel(CrossEntropyForwardArgs args) {
  const int sharing = whole_block ? static_cast<int>(blockDim.x) : warp_lanes;
  const int rank = static_cast<int>(threadIdx.x) % sharing;
  const std::int64_t rows_at_once =
      static_cast<std::int64_t>(gridDim.x) * (blockDim.x / static_cast<unsigned>(sharing));
  for (std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / sharing; row < args.rows;
       row += rows_at_once) {
    const T* logits = static_cast<const T*>(args.logits) + row * args.stride;
    Softmax<Wide<T>> all = seen_of(logits, args.classes, rank, sharing);
    if constexpr (whole_block) {
      all = block_softmax(all);
    } else {
      all = warp_softmax(all);
    }
    if (rank != 0) continue;
    const double lse = static_cast<double>(shift_of(all.largest)) + log(static_cast<double>(all.sum));
    const int label = load(args.labels + row);
    const bool known = label >= 0 && label < args.classes;
    store(static_cast<Wide<T>*>(args.lse) + row, static_cast<Wide<T>>(lse));
    store(args.row_loss + row,
          known ? lse - static_cast<double>(widen(load(logits + label))) : static_cast<double>(NAN));
  }
}

template <class W>
__global__ void __launch_bounds__(1024) mean_kernel(CrossEntropyForwardArgs args) {
  double sum = 0.0;
  for (std::int64_t row = threadIdx.x; row < args.rows; row += blockDim.x) sum += load(args.row_loss + row);
  const double total = block_sum(sum, shared_storage<PerWarp<double>>());
  if (threadIdx.x == 0) store(static_cast<W*>(args.loss), static_cast<W>(total / static_cast<double>(args.rows)));
}

/// What a row's gradient is made with. `scale` is 1 / rows.
template <class W>
struct GradientRow {
  W lse, scale;
  std::int64_t label;
};

template <class T, int N>
__device__ __forceinline__ Pack<T, N> gradient_of(const Pack<T, N>& x, std::int64_t column,
                                                  const GradientRow<Wide<T>>& row) {
  Pack<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const Wide<T> p = full_exp(widen(x.at[i]) - row.lse);
    y.at[i] = narrow<T>((column + i == row.label ? p - Wide<T>(1) : p) * row.scale);
  }
  return y;
}

/// A block's share of one row: rows are split so that few rows fill the machine as well.
template <class T>
__global__ void __launch_bounds__(256) backward_kernel(CrossEntropyBackwardArgs args) {
  constexpr int n = pack_elements<T>;
  constexpr std::int64_t share = std::int64_t{256} * n * packs_in_flight;
  const std::int64_t shares = (args.classes + share - 1) / share;
  for (std::int64_t work = blockIdx.x; work < shares * args.rows; work += gridDim.x) {
    const std::int64_t index = work / shares;
    const std::int64_t begin = (work - index * shares) * share;
    const T* logits = static_cast<const T*>(args.logits) + index * args.logits_stride;
    T* dlogits = static_cast<T*>(args.dlogits) + index * args.dlogits_stride;
    GradientRow<Wide<T>> row{load(static_cast<const Wide<T>*>(args.lse) + index),
                             Wide<T>(1) / static_cast<Wide<T>>(args.rows), load(args.labels + index)};
    if (row.label < 0 || row.label >= args.classes) row.lse = Wide<T>(NAN);
    // Shares are counted from the first boundary; the first one takes what lies before it as well.
    const int head = head_of(logits, args.classes);
    const bool together = head == head_of(dlogits, args.classes);
    const auto rank = static_cast<int>(threadIdx.x);
    if (begin == 0 && rank < head) store_pack(dlogits + rank, gradient_of(load_pack<1>(logits + rank), rank, row));
    const std::int64_t end = begin + share + head < args.classes ? begin + share + head : args.classes;
    if (together) {
      Pack<T, n> loaded[packs_in_flight] = {};
#pragma unroll
      for (int k = 0; k < packs_in_flight; ++k) {
        const std::int64_t column = begin + head + (static_cast<std::int64_t>(k) * 256 + rank) * n;
        if (column < end) loaded[k] = load_part<n>(logits + column, end - column, T{});
      }
#pragma unroll
      for (int k = 0; k < packs_in_flight; ++k) {
        const std::int64_t column = begin + head + (static_cast<std::int64_t>(k) * 256 + rank) * n;
        if (column < end) store_part(dlogits + column, end - column, gradient_of(loaded[k], column, row));
      }
    } else {
      for (std::int64_t column = begin + head + rank; column < end; column += 256) {
        store_pack(dlogits + column, gradient_of(load_pack<1>(logits + column), column, row));
      }
    }
  }
}

}  // namespace

void launch_cross_entropy_forward(const CrossEntropyForwardArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    if (args.classes <= warp_kernel_classes) {
      const Grid grid{blocks_for(args.rows, warp_kernel_threads / warp_lanes), warp_kernel_threads};
      launch(forward_kernel<T, false>, grid, stream, args);
    } else {
      const std::int64_t per_warp = std::int64_t{warp_lanes} * pack_elements<T> * packs_in_flight;
      const std::int64_t warps = std::min<std::int64_t>((args.classes + per_warp - 1) / per_warp, 16);
      launch(forward_kernel<T, true>, Grid{blocks_for(args.rows, 1), static_cast<int>(warps) * warp_lanes}, stream,
             args);
    }
    launch(mean_kernel<Wide<T>>, Grid{1, 1024}, stream, args);
  });
}

void launch_cross_entropy_backward(const CrossEntropyBackwardArgs& args, cudaStream_t stream) {
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr std::int64_t share = std::int64_t{256} * pack_elements<T> * packs_in_flight;
    const std::int64_t shares = (args.classes + share - 1) / share;
    launch(backward_kernel<T>, Grid{blocks_for(shares * args.rows, 1), 256}, stream, args);
  });
}

}  // namespace gpubench::cuda
