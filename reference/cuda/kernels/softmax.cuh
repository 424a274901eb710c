// Passes over a row of logits. Each thread keeps the largest logit so far and the sum of exp(logit - largest), rescaled
// when the largest changes (Milakov and Gimelshein, arXiv 1805.02867).
// Rows of odd vocabularies (50257) start unaligned: single elements up to the first 16-byte boundary, then packs.
#pragma once

#include "reference/cuda/kernels/cross_entropy.h"
#include "reference/cuda/kernels/memory.cuh"
#include "reference/cuda/kernels/number.cuh"
#include "reference/cuda/kernels/reduce.cuh"

namespace gpubench::cuda {

inline constexpr int packs_in_flight = 4;

/// Largest logit so far, and the sum of exp(x - largest), in f32 (f64 for f64 logits).
template <class W>
struct Softmax {
  W largest = W(-INFINITY);
  W sum = W(0);
};

/// 0 instead of -inf, so that rows of -inf give no NaN; NaN and other infinities propagate.
template <class W>
__device__ __forceinline__ W shift_of(W largest) {
  return largest == W(-INFINITY) ? W(0) : largest;
}

/// exp(x - shift), x <= shift. In f32 within 2 |d| + 5 units of roundoff u, d = x - shift; the bounds of cross-entropy
/// allow 2 |d| + 6 (cross_entropy_textbook.cpp).
///
/// u |d| comes from the difference, u |d| from the product d log2(e), 2.5 ulps of at most 2 u each from the power.
/// log2(e) has two parts: one would be off by 0.22 u, and 2.22 |d| + 5 exceeds the bound from |d| = 4.5. Results below
/// 2^-126 become 0, an error below the bounds' last term.
__device__ __forceinline__ float exp_of_difference(float x, float shift) {
  constexpr float log2_e = 1.44269502F;
  constexpr float rest = 1.92596299e-8F;  // log2(e) = 1.4426950408889634...
  const float d = x - shift;
  return fast_exp2(fmaf(d, log2_e, d * rest));
}
__device__ __forceinline__ double exp_of_difference(double x, double shift) { return full_exp(x - shift); }

/// exp(before - now) of the largest logits: the factor of the sum so far. At most 1: if only -inf came before, the sum
/// is 0 or NaN, and 0 times exp(0 - now), infinite in f32 from -89 on, would be NaN.
template <class W>
__device__ __forceinline__ W rescaling(W before, W now) {
  const W difference = shift_of(before) - shift_of(now);
  return full_exp(difference < W(0) ? difference : W(0));
}

/// Ignores NaN.
__device__ __forceinline__ float larger_of(float a, float b) { return fmaxf(a, b); }
__device__ __forceinline__ double larger_of(double a, double b) { return a > b ? a : b; }

template <class W>
__device__ __forceinline__ Softmax<W> joined(Softmax<W> a, Softmax<W> b) {
  const W largest = a.largest > b.largest ? a.largest : b.largest;
  return {largest, a.sum * rescaling(a.largest, largest) + b.sum * rescaling(b.largest, largest)};
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
  __syncthreads();  // all threads have read the previous row's values
  if (lane == 0) {
    scratch.largest.at[threadIdx.x / warp_lanes] = value.largest;
    scratch.sum.at[threadIdx.x / warp_lanes] = value.sum;
  }
  __syncthreads();
  if (lane < static_cast<int>(blockDim.x) / warp_lanes) {
    value = {scratch.largest.at[lane], scratch.sum.at[lane]};
  } else {
    value = {};
  }
  return warp_softmax(value);
}

/// The sum over the threads of a row (a warp or a block), returned in all of them.
template <bool whole_block, class W>
__device__ __forceinline__ W sum_over_row(W value) {
  if constexpr (whole_block) {
    __syncthreads();  // all threads have read the scratch
    return block_sum(value, shared_storage<SoftmaxScratch<W>>().sum);
  } else {
    return warp_sum(value);
  }
}

/// Packs that lie entirely in the row.
template <class T, int N, int packs>
__device__ __forceinline__ void add_packs(const Loaded<T, N> (&pack)[packs], Softmax<Wide<T>>& seen) {
  using W = Wide<T>;
  W largest = seen.largest;
#pragma unroll
  for (int k = 0; k < packs; ++k) {
#pragma unroll
    for (int i = 0; i < N; ++i) largest = larger_of(largest, widen(pack[k][i]));
  }
  if (largest > seen.largest) {
    seen.sum *= rescaling(seen.largest, largest);
    seen.largest = largest;
  }
  const W shift = shift_of(seen.largest);
#pragma unroll
  for (int k = 0; k < packs; ++k) {
    W sum = 0;
#pragma unroll
    for (int i = 0; i < N; ++i) sum += exp_of_difference(widen(pack[k][i]), shift);
    seen.sum += sum;
  }
}

template <class T, int N>
__device__ __forceinline__ void add_pack(const Loaded<T, N>& pack, Softmax<Wide<T>>& seen) {
  const Loaded<T, N> one[1] = {pack};
  add_packs(one, seen);
}

__device__ __forceinline__ double counted_rows(const CrossEntropyTerms& terms, std::int64_t rows) {
  return terms.ignores ? load(terms.counted) : static_cast<double>(rows);
}

__device__ __forceinline__ bool counts(const CrossEntropyTerms& terms, int label) {
  return !terms.ignores || label != terms.ignore_index;
}

/// Sum of this thread's elements of a row; `sharing` threads share it, single elements at a time.
template <class T>
__device__ __forceinline__ Wide<T> logit_sum_of(const T* row, std::int64_t classes, int rank, int sharing) {
  Wide<T> sum = 0;
  for (std::int64_t i = rank; i < classes; i += sharing) sum += widen(load(row + i));
  return sum;
}

/// The part of a row's loss that is subtracted from its lse. of_label: the label's logit; logit_sum: sum of logits, for
/// label smoothing. `classes`, here and below: on all ranks.
__device__ __forceinline__ double score_of(const CrossEntropyTerms& terms, int classes, double of_label,
                                           double logit_sum) {
  double score = (1.0 - terms.label_smoothing) * of_label;
  if (terms.label_smoothing != 0.0) score += terms.label_smoothing / static_cast<double>(classes) * logit_sum;
  return score;
}

__device__ __forceinline__ double row_loss_of(const CrossEntropyTerms& terms, double lse, double score) {
  return terms.z_loss == 0.0 ? lse - score : lse - score + terms.z_loss * lse * lse;
}

/// A row's gradient is exp(x - shift) factor - base; at the label, target replaces base.
template <class W>
struct GradientRow {
  W shift, factor, base, target;
  int label;  ///< index among the local classes
};

/// p = exp(x - shift) p_factor. All 0 for an ignored row, NaN for a label outside the classes.
template <class W>
__device__ __forceinline__ GradientRow<W> gradient_row(const CrossEntropyTerms& terms, std::int64_t rows, int first,
                                                       int classes, int label, W lse, W shift, W p_factor) {
  const int here = label - first;
  if (!counts(terms, label)) return {shift, W(0), W(0), W(0), here};
  W scale = W(1) / static_cast<W>(counted_rows(terms, rows));
  if (terms.dloss != nullptr) scale *= load(static_cast<const W*>(terms.dloss));
  if (label < 0 || label >= classes) p_factor = W(NAN);
  const W slope = terms.z_loss == 0.0 ? W(1) : W(1) + static_cast<W>(2.0 * terms.z_loss) * lse;
  const bool smooths = terms.label_smoothing != 0.0;
  const double share = smooths ? terms.label_smoothing / static_cast<double>(classes) : 0.0;
  return {shift, p_factor * scale * slope, smooths ? static_cast<W>(share) * scale : W(0),
          static_cast<W>(1.0 - terms.label_smoothing + share) * scale, here};
}

/// Gradients of columns from `column` on. The label is handled separately, so that other columns need no test.
template <class T, int N, class Column>
__device__ __forceinline__ Pack<T, N> gradient_of(const Loaded<T, N>& x, Column column,
                                                  const GradientRow<Wide<T>>& row) {
  using W = Wide<T>;
  Pack<T, N> y;
#pragma unroll
  for (int i = 0; i < N; ++i) y.at[i] = narrow<T>(exp_of_difference(widen(x[i]), row.shift) * row.factor - row.base);
  const Column at = row.label - column;
  if (at < 0 || at >= N) return y;
  W of_label = widen(x[0]);
#pragma unroll
  for (int i = 1; i < N; ++i) of_label = i == at ? widen(x[i]) : of_label;
  const T own = narrow<T>(exp_of_difference(of_label, row.shift) * row.factor - row.target);
#pragma unroll
  for (int i = 0; i < N; ++i) y.at[i] = i == at ? own : y.at[i];
  return y;
}

/// Elements before the row's first 16-byte boundary.
template <class T>
__device__ __forceinline__ int head_of(const T* row, std::int64_t classes) {
  const auto beyond = static_cast<int>(reinterpret_cast<std::uintptr_t>(row) % pack_bytes / sizeof(T));
  const int head = beyond == 0 ? 0 : pack_elements<T> - beyond;
  return head < classes ? head : static_cast<int>(classes);
}

template <class T>
__device__ __forceinline__ Softmax<Wide<T>> seen_of(const T* row, std::int64_t classes, int rank, int sharing) {
  constexpr int n = pack_elements<T>;
  Softmax<Wide<T>> seen;
  const int head = head_of(row, classes);
  if (rank < head) add_pack(load_pack<1>(row + rank), seen);
  const T* body = row + head;
  const std::int64_t packs = (classes - head) / n;
  std::int64_t pack = rank;
  for (; pack + static_cast<std::int64_t>(packs_in_flight - 1) * sharing < packs;
       pack += static_cast<std::int64_t>(packs_in_flight) * sharing) {
    Loaded<T, n> loaded[packs_in_flight];
#pragma unroll
    for (int k = 0; k < packs_in_flight; ++k)
      loaded[k] = load_pack<n>(body + (pack + static_cast<std::int64_t>(k) * sharing) * n);
    add_packs(loaded, seen);
  }
  for (; pack < packs; pack += sharing) add_pack(load_pack<n>(body + pack * n), seen);
  for (std::int64_t i = packs * n + rank; i < classes - head; i += sharing) add_pack(load_pack<1>(body + i), seen);
  return seen;
}

}  // namespace gpubench::cuda
