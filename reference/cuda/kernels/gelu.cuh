// GELU and its derivative in f32 and f64. Formulas: reference/ops/pointwise.h; bounds: gelu_textbook.cpp in the same
// folder.
#pragma once

#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {

template <class W>
inline constexpr W gelu_c = W(0.79788456080286535588);  // sqrt(2 / pi)
template <class W>
inline constexpr W gelu_ck = gelu_c<W>* W(0.044715);
template <class W>
inline constexpr W root_of_half = W(0.70710678118654752440);

/// x / 2 (1 + tanh t) = x s(2t), with the logistic function s and t = sqrt(2 / pi) (x + 0.044715 x^3). Avoids
/// cancellation for negative x, and needs one fast exp.
template <class W>
__device__ __forceinline__ W gelu_tanh(W x) {
  const W twice_t = x * (W(2) * gelu_c<W> + W(2) * gelu_ck<W> * (x * x));
  return fast_divide(x, W(1) + fast_exp(-twice_t));
}

/// s + 2 x t' s (1 - s), with e = exp(-2 |t|) and s(2t) = 1 / (1 + e) for x >= 0, else e / (1 + e): 1 - s would cancel.
/// Beyond |x| = 10 the result is 0 or 1, also in f64 (e = 1e-38), and x t' would overflow.
template <class W>
__device__ __forceinline__ W gelu_tanh_slope(W wide_x) {
  const W x = wide_x > W(10) ? W(10) : (wide_x < W(-10) ? W(-10) : wide_x);  // keeps NaN
  const W square = x * x;
  const W magnitude = x < W(0) ? -x : x;
  const W e = fast_exp(W(-2) * magnitude * (gelu_c<W> + gelu_ck<W> * square));
  const W r = W(1) / (W(1) + e);
  return (x < W(0) ? e * r : r) + W(2) * x * (gelu_c<W> + W(3) * gelu_ck<W> * square) * (e * r * r);
}

template <class W>
__device__ __forceinline__ W gelu_erf(W x) {
  return W(0.5) * x * (W(1) + full_erf(x * root_of_half<W>));
}

/// P(x) + x p(x), with the normal distribution P and its density p.
template <class W>
__device__ __forceinline__ W gelu_erf_slope(W x) {
  const W density = W(0.39894228040143267794) * fast_exp(W(-0.5) * x * x);
  return W(0.5) * (W(1) + full_erf(x * root_of_half<W>)) + x * density;
}

template <bool tanh, class W>
__device__ __forceinline__ W gelu_of(W x) {
  if constexpr (tanh) {
    return gelu_tanh(x);
  } else {
    return gelu_erf(x);
  }
}

template <bool tanh, class W>
__device__ __forceinline__ W gelu_slope_of(W x) {
  if constexpr (tanh) {
    return gelu_tanh_slope(x);
  } else {
    return gelu_erf_slope(x);
  }
}

}  // namespace gpubench::cuda
