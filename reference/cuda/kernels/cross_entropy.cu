// A block per row (a warp for up to 1024 classes), one pass.
#include "reference/cuda/kernels/cross_entropy.h"

#include <algorithm>

#include "reference/cuda/kernels/softmax.cuh"

namespace gpubench::cuda {
namespace {

constexpr int warp_kernel_threads = 128;
constexpr std::int64_t warp_kernel_classes = 1024;

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
    double logit_sum = 0.0;
    if (args.terms.label_smoothing != 0.0)
      logit_sum = sum_over_row<whole_block>(logit_sum_of(logits, args.classes, rank, sharing));
    if (rank != 0) continue;
    const double lse = static_cast<double>(shift_of(all.largest)) + log(static_cast<double>(all.sum));
    const int label = load(args.labels + row);
    const int here = label - args.part.first;
    store(static_cast<Wide<T>*>(args.lse) + row, static_cast<Wide<T>>(lse));
    double of_label = label >= 0 && label < args.part.all ? 0.0 : static_cast<double>(NAN);
    if (here >= 0 && here < args.classes) of_label = static_cast<double>(widen(load(logits + here)));
    const double score = counts(args.terms, label) ? score_of(args.terms, args.part.all, of_label, logit_sum) : 0.0;
    if (args.score != nullptr) {
      store(static_cast<Wide<T>*>(args.score) + row, static_cast<Wide<T>>(score));
    } else {
      store(args.row_loss + row, counts(args.terms, label) ? row_loss_of(args.terms, lse, score) : 0.0);
    }
  }
}

template <class W>
__global__ void __launch_bounds__(256) combine_kernel(CrossEntropyCombineArgs args) {
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; row < args.rows;
       row += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    double largest = -INFINITY, sum = 0.0, score = 0.0;
    for (std::int64_t part = 0; part < args.parts; ++part)
      largest =
          larger_of(largest, static_cast<double>(load(static_cast<const W*>(args.lses) + part * args.rows + row)));
    const double shift = shift_of(largest);
    for (std::int64_t part = 0; part < args.parts; ++part) {
      sum += full_exp(static_cast<double>(load(static_cast<const W*>(args.lses) + part * args.rows + row)) - shift);
      score += static_cast<double>(load(static_cast<const W*>(args.scores) + part * args.rows + row));
    }
    const double lse = shift + log(sum);
    store(static_cast<W*>(args.lse) + row, static_cast<W>(lse));
    store(args.row_loss + row, counts(args.terms, load(args.labels + row)) ? row_loss_of(args.terms, lse, score) : 0.0);
  }
}

__global__ void __launch_bounds__(1024) count_kernel(CountRowsArgs args) {
  if (args.count != nullptr) {
    if (threadIdx.x != 0) return;
    const double given = args.data == Element::f64 ? load(static_cast<const double*>(args.count))
                                                   : static_cast<double>(load(static_cast<const float*>(args.count)));
    return store(args.terms.counted, given);
  }
  double count = 0.0;
  for (std::int64_t row = threadIdx.x; row < args.rows; row += blockDim.x) {
    count += counts(args.terms, load(args.labels + row)) ? 1.0 : 0.0;
  }
  const double total = block_sum(count, shared_storage<PerWarp<double>>());
  if (threadIdx.x == 0) store(args.terms.counted, total);
}

__global__ void __launch_bounds__(1024) count_labels_kernel(CountLabelsArgs args) {
  double count = 0.0;
  for (std::int64_t row = threadIdx.x; row < args.rows; row += blockDim.x)
    count += load(args.labels + row) != args.ignore_index ? 1.0 : 0.0;
  const double total = block_sum(count, shared_storage<PerWarp<double>>());
  if (threadIdx.x == 0) store(args.y, static_cast<float>(total / args.parts));
}

template <class W>
__global__ void __launch_bounds__(1024) mean_kernel(MeanLossArgs args) {
  double sum = 0.0;
  for (std::int64_t row = threadIdx.x; row < args.rows; row += blockDim.x) sum += load(args.row_loss + row);
  const double total = block_sum(sum, shared_storage<PerWarp<double>>());
  if (threadIdx.x == 0) {
    store(static_cast<W*>(args.loss), static_cast<W>(total / counted_rows(args.terms, args.rows)));
  }
}

/// A block's share of a row: splitting rows lets few rows fill the GPU.
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
    using W = Wide<T>;
    const W lse = load(static_cast<const W*>(args.lse) + index);
    const GradientRow<W> row =
        gradient_row(args.terms, args.rows, args.part.first, args.part.all, load(args.labels + index), lse, lse, W(1));
    // Shares start at the first boundary; the first share includes the elements before it.
    const int head = head_of(logits, args.classes);
    const bool together = head == head_of(dlogits, args.classes);
    const auto rank = static_cast<int>(threadIdx.x);
    if (begin == 0 && rank < head) store_pack(dlogits + rank, gradient_of(load_pack<1>(logits + rank), rank, row));
    const std::int64_t end = begin + share + head < args.classes ? begin + share + head : args.classes;
    if (together && begin + head + share == end) {
      const std::int64_t column = begin + head + static_cast<std::int64_t>(rank) * n;
      Loaded<T, n> loaded[packs_in_flight];
#pragma unroll
      for (int k = 0; k < packs_in_flight; ++k) loaded[k] = load_pack<n>(logits + column + k * 256 * n);
#pragma unroll
      for (int k = 0; k < packs_in_flight; ++k) {
        store_pack(dlogits + column + k * 256 * n, gradient_of(loaded[k], column + k * 256 * n, row));
      }
    } else if (together) {
      const std::int64_t packed_end = end - (end - begin - head) % n;
      for (std::int64_t column = begin + head + rank * n; column < packed_end; column += 256 * n) {
        store_pack(dlogits + column, gradient_of(load_pack<n>(logits + column), column, row));
      }
      const std::int64_t column = packed_end + rank;
      if (column < end) store_pack(dlogits + column, gradient_of(load_pack<1>(logits + column), column, row));
    } else {
      for (std::int64_t column = begin + head + rank; column < end; column += 256) {
        store_pack(dlogits + column, gradient_of(load_pack<1>(logits + column), column, row));
      }
    }
  }
}

}  // namespace

void launch_cross_entropy_forward(const CrossEntropyForwardArgs& args, cudaStream_t stream) {
  launch_count_rows({args.terms, args.data, args.labels, args.rows, args.count}, stream);
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
  });
  if (args.score == nullptr) launch_mean_loss({args.terms, args.data, args.row_loss, args.rows, args.loss}, stream);
}

void launch_cross_entropy_combine(const CrossEntropyCombineArgs& args, cudaStream_t stream) {
  launch_count_rows({args.terms, args.data, args.labels, args.rows, args.count}, stream);
  const auto kernel = args.data == Element::f64 ? combine_kernel<double> : combine_kernel<float>;
  launch(kernel, Grid{blocks_for(args.rows, 256), 256}, stream, args);
  launch_mean_loss({args.terms, args.data, args.row_loss, args.rows, args.loss}, stream);
}

void launch_count_rows(const CountRowsArgs& args, cudaStream_t stream) {
  if (args.terms.ignores) launch(count_kernel, Grid{1, 1024}, stream, args);
}

void launch_count_labels(const CountLabelsArgs& args, cudaStream_t stream) {
  launch(count_labels_kernel, Grid{1, 1024}, stream, args);
}

void launch_mean_loss(const MeanLossArgs& args, cudaStream_t stream) {
  if (args.data == Element::f64) return launch(mean_kernel<double>, Grid{1, 1024}, stream, args);
  launch(mean_kernel<float>, Grid{1, 1024}, stream, args);
}

void launch_cross_entropy_backward(const CrossEntropyBackwardArgs& args, cudaStream_t stream) {
  launch_count_rows({args.terms, args.data, args.labels, args.rows, args.count}, stream);
  with_any_type(args.data, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr std::int64_t share = std::int64_t{256} * pack_elements<T> * packs_in_flight;
    const std::int64_t shares = (args.classes + share - 1) / share;
    launch(backward_kernel<T>, Grid{blocks_for(shares * args.rows, 1), 256}, stream, args);
  });
}

}  // namespace gpubench::cuda
