// GELU and its derivative in f32, for kernels. Formulas and bounds: reference/ops/gelu.h, NUMERICS 2.5 and 2A.
#pragma once

#include "reference/cuda/kernels/number.cuh"

namespace gpubench::cuda {

/// x / 2 (1 + tanh t) = x s(2t), with the logistic function s, t = sqrt(2 / pi) (x + 0.044715 x^3): nothing cancels for
/// negative x, and one fast exp does.
__device__ __forceinline__ float gelu_tanh(float x) {
  constexpr float twice_c = 1.5957691216057308F;  // 2 sqrt(2 / pi)
  constexpr float twice_ck = 1.5957691216057308F * 0.044715F;
  const float twice_t = x * (twice_c + twice_ck * (x * x));
  return fast_divide(x, 1.0F + fast_exp(-twice_t));
}

/// s + 2 x t' s (1 - s), with s(2t) = 1 / (1 + e) for x >= 0 and e / (1 + e) below, e = exp(-2 |t|): 1 - s would
/// cancel. Beyond |x| = 10 it is 0 or 1 in f32, and x t' would overflow.
__device__ __forceinline__ float gelu_tanh_slope(float wide_x) {
  constexpr float c = 0.7978845608028654F;  // sqrt(2 / pi)
  constexpr float ck = 0.7978845608028654F * 0.044715F;
  const float x = wide_x > 10.0F ? 10.0F : (wide_x < -10.0F ? -10.0F : wide_x);  // NaN stays
  const float square = x * x;
  const float e = fast_exp(-2.0F * fabsf(x) * (c + ck * square));
  const float r = 1.0F / (1.0F + e);
  return (x < 0.0F ? e * r : r) + 2.0F * x * (c + 3.0F * ck * square) * (e * r * r);
}

__device__ __forceinline__ float gelu_erf(float x) { return 0.5F * x * (1.0F + full_erf(x * 0.7071067811865476F)); }

/// P(x) + x p(x), the distribution and density of the normal distribution.
__device__ __forceinline__ float gelu_erf_slope(float x) {
  const float density = 0.3989422804014327F * fast_exp(-0.5F * x * x);
  return 0.5F * (1.0F + full_erf(x * 0.7071067811865476F)) + x * density;
}

}  // namespace gpubench::cuda
