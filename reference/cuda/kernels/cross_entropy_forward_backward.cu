// Loss and gradient in one kernel.
//
// A row is read once if it fits in the registers of a warp (up to 1024 classes), or of a block of 512 threads; two such
// blocks per multiprocessor hide each other's loads. Blocks lack the registers in f64, and if the loss has terms
// besides -log p. Longer rows are read twice, the second time from the L2 cache, which exceeds the working set of all
// blocks.
//
// In place, a thread rewrites exactly the elements that it has read.
#include <algorithm>

#include "reference/cuda/kernels/cross_entropy.h"
#include "reference/cuda/kernels/softmax.cuh"

namespace gpubench::cuda {
namespace {

constexpr int warp_kernel_threads = 128;
constexpr int block_kernel_threads = 512;
constexpr int held_packs_of_16_bytes = 6;  // 24 of the 64 registers per thread with two such blocks

/// A row and this thread's share: an element before the first 16-byte boundary, packs, and an element after the last.
template <class T>
struct RowShare {
  static constexpr int n = pack_elements<T>;
  const T* logits;
  T* dlogits;
  int classes, packs, head, rank, sharing;  // int: labels have 32 bits
  bool together;                            ///< packs of the gradient are aligned too

  __device__ __forceinline__ RowShare(const CrossEntropyForwardBackwardArgs& args, std::int64_t row, int own_rank,
                                      int threads)
      : logits(static_cast<const T*>(args.logits) + row * args.logits_stride),
        dlogits(static_cast<T*>(args.dlogits) + row * args.dlogits_stride),
        classes(static_cast<int>(args.classes)),
        head(head_of(logits, args.classes)),
        rank(own_rank),
        sharing(threads) {
    packs = (classes - head) / n;
    together = head == head_of(static_cast<const T*>(dlogits), classes);
  }
  __device__ __forceinline__ bool has_first() const { return rank < head; }
  __device__ __forceinline__ int last() const { return head + packs * n + rank; }
  __device__ __forceinline__ bool has_last() const { return last() < classes; }
  __device__ __forceinline__ int column(int pack) const { return head + pack * n; }

  /// Over this thread's elements.
  __device__ __forceinline__ Wide<T> logit_sum() const {
    Wide<T> sum = has_first() ? widen(load(logits + rank)) : Wide<T>(0);
    for (int pack = rank; pack < packs; pack += sharing) {
      const auto x = load_pack<n>(logits + column(pack));
#pragma unroll
      for (int i = 0; i < n; ++i) sum += widen(x[i]);
    }
    return has_last() ? sum + widen(load(logits + last())) : sum;
  }

  /// Whether element `index` belongs to this thread.
  __device__ __forceinline__ bool owns(int index) const {
    if (index < head) return index == rank;
    const int pack = (index - head) / n;
    return pack < packs ? pack % sharing == rank : index == last();
  }
};

/// The row's lse, loss and gradient factors. All threads of the row must call it before one stores a gradient. `plain`:
/// no further terms, and dloss is 1.
template <class T, bool whole_block, bool plain>
__device__ __forceinline__ GradientRow<Wide<T>> finish(const CrossEntropyForwardBackwardArgs& args, std::int64_t row,
                                                       const RowShare<T>& share, const Softmax<Wide<T>>& all) {
  using W = Wide<T>;
  const CrossEntropyTerms terms = plain ? CrossEntropyTerms{} : args.terms;
  const int label = load(args.labels + row);
  const bool known = label >= 0 && label < share.classes;
  const W shift = shift_of(all.largest);
  double logit_sum = 0.0;
  if (terms.label_smoothing != 0.0) {
    logit_sum = sum_over_row<whole_block>(share.logit_sum());
  }
  const bool first = share.rank == 0;
  const bool writes_loss = known ? share.owns(label) : first;
  if (first || writes_loss) {
    const double lse = static_cast<double>(shift) + log(static_cast<double>(all.sum));
    if (first) store(static_cast<W*>(args.lse) + row, static_cast<W>(lse));
    if (writes_loss) {
      const double of_label = known ? static_cast<double>(widen(load(share.logits + label))) : static_cast<double>(NAN);
      store(args.row_loss + row,
            counts(terms, label) ? row_loss_of(terms, lse, score_of(terms, share.classes, of_label, logit_sum)) : 0.0);
    }
  }
  if constexpr (plain) {  // the general case below, in fewer registers
    const W scale = W(1) / static_cast<W>(args.rows);
    return {shift, (known ? W(1) / all.sum : W(NAN)) * scale, W(0), scale, label};
  }
  const W lse = terms.z_loss == 0.0 ? W(0) : shift + static_cast<W>(log(static_cast<double>(all.sum)));
  return gradient_row(terms, args.rows, 0, share.classes, label, lse, shift, W(1) / all.sum);
}

template <class T, int N>
__device__ __forceinline__ void store_gradient(const RowShare<T>& share, int column, const Loaded<T, N>& x,
                                               const GradientRow<Wide<T>>& row) {
  const Pack<T, N> y = gradient_of(x, column, row);
  if constexpr (N == 1) {
    store_pack(share.dlogits + column, y);
  } else if (share.together) {
    store_pack(share.dlogits + column, y);
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) store(share.dlogits + column + i, y.at[i]);
  }
}

template <bool whole_block, class W>
__device__ __forceinline__ Softmax<W> joined_over_row(const Softmax<W>& seen) {
  if constexpr (whole_block) {
    return block_softmax(seen);
  } else {
    return warp_softmax(seen);
  }
}

/// Rows that fit in registers: a warp per row, or a block for a plain loss.
template <class T, bool whole_block>
__global__ void __launch_bounds__(whole_block ? block_kernel_threads : warp_kernel_threads, whole_block ? 2 : 1)
    held_kernel(CrossEntropyForwardBackwardArgs args) {
  constexpr int n = pack_elements<T>;
  constexpr int held_packs = whole_block ? held_packs_of_16_bytes : 1024 / (warp_lanes * n);
  const int sharing = whole_block ? static_cast<int>(blockDim.x) : warp_lanes;
  const std::int64_t rows_at_once =
      static_cast<std::int64_t>(gridDim.x) * (blockDim.x / static_cast<unsigned>(sharing));
  for (std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / sharing; row < args.rows;
       row += rows_at_once) {
    const RowShare<T> share(args, row, static_cast<int>(threadIdx.x) % sharing, sharing);
    Loaded<T, n> held[held_packs];
    Loaded<T, 1> first;
    Loaded<T, 1> last;
    if (share.has_first()) first = load_pack<1>(share.logits + share.rank);
#pragma unroll
    for (int k = 0; k < held_packs; ++k) {
      const int pack = k * sharing + share.rank;
      if (pack < share.packs) held[k] = load_pack<n>(share.logits + share.column(pack));
    }
    if (share.has_last()) last = load_pack<1>(share.logits + share.last());
    Softmax<Wide<T>> seen;
    if (share.has_first()) add_pack(first, seen);
#pragma unroll
    for (int k = 0; k < held_packs; ++k) {
      if (k * sharing + share.rank < share.packs) add_pack(held[k], seen);
    }
    if (share.has_last()) add_pack(last, seen);
    const GradientRow<Wide<T>> gradient =
        finish<T, whole_block, whole_block>(args, row, share, joined_over_row<whole_block>(seen));
    if (share.has_first()) store_gradient(share, share.rank, first, gradient);
#pragma unroll
    for (int k = 0; k < held_packs; ++k) {
      const int pack = k * sharing + share.rank;
      if (pack < share.packs) store_gradient(share, share.column(pack), held[k], gradient);
    }
    if (share.has_last()) store_gradient(share, share.last(), last, gradient);
  }
}

/// Rows of any length; a block per row.
template <class T>
__global__ void __launch_bounds__(block_kernel_threads) long_kernel(CrossEntropyForwardBackwardArgs args) {
  constexpr int n = pack_elements<T>;
  const auto sharing = static_cast<int>(blockDim.x);
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const RowShare<T> share(args, row, static_cast<int>(threadIdx.x), sharing);
    const Softmax<Wide<T>> all = block_softmax(seen_of(share.logits, args.classes, share.rank, sharing));
    const GradientRow<Wide<T>> gradient = finish<T, true, false>(args, row, share, all);
    if (share.has_first()) store_gradient(share, share.rank, load_pack<1>(share.logits + share.rank), gradient);
    int pack = share.rank;
    for (; pack + (packs_in_flight - 1) * sharing < share.packs; pack += packs_in_flight * sharing) {
      Loaded<T, n> loaded[packs_in_flight];
#pragma unroll
      for (int k = 0; k < packs_in_flight; ++k) {
        loaded[k] = load_pack<n>(share.logits + share.column(pack + k * sharing));
      }
#pragma unroll
      for (int k = 0; k < packs_in_flight; ++k) {
        store_gradient(share, share.column(pack + k * sharing), loaded[k], gradient);
      }
    }
    for (; pack < share.packs; pack += sharing) {
      store_gradient(share, share.column(pack), load_pack<n>(share.logits + share.column(pack)), gradient);
    }
    if (share.has_last()) store_gradient(share, share.last(), load_pack<1>(share.logits + share.last()), gradient);
  }
}

bool is_plain(const CrossEntropyTerms& terms) {
  return !terms.ignores && terms.label_smoothing == 0.0 && terms.z_loss == 0.0 && terms.dloss == nullptr;
}

template <class T>
void launch_typed(const CrossEntropyForwardBackwardArgs& args, cudaStream_t stream) {
  constexpr int n = pack_elements<T>;
  if (args.classes <= 1024) {
    const Grid grid{blocks_for(args.rows, warp_kernel_threads / warp_lanes), warp_kernel_threads};
    return launch(held_kernel<T, false>, grid, stream, args);
  }
  const std::int64_t per_warp = std::int64_t{warp_lanes} * n * held_packs_of_16_bytes;
  const std::int64_t warps = (args.classes + per_warp - 1) / per_warp;
  constexpr std::int64_t most = block_kernel_threads / warp_lanes;
  const Grid grid{blocks_for(args.rows, 1), static_cast<int>(std::min(warps, most)) * warp_lanes};
  if constexpr (sizeof(T) < sizeof(double)) {  // exp in f64 leaves too few registers for a row
    if (warps <= most && is_plain(args.terms)) return launch(held_kernel<T, true>, grid, stream, args);
  }
  launch(long_kernel<T>, grid, stream, args);
}

}  // namespace

void launch_cross_entropy_forward_backward(const CountedForwardBackwardArgs& args, cudaStream_t stream) {
  launch_count_rows({args.terms, args.data, args.labels, args.rows, args.count}, stream);
  with_any_type(args.data, [&](auto type) { launch_typed<typename decltype(type)::type>(args, stream); });
  launch_mean_loss({args.terms, args.data, args.row_loss, args.rows, args.loss}, stream);
}

}  // namespace gpubench::cuda
