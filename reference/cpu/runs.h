// Arithmetic on runs of elements, shared by ops; in Highway, for the instruction set in use.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "harness/core/dtype.h"
#include "reference/cpu/block_io.h"
#include "reference/ops/pointwise.h"

namespace gpubench::cpu {

// Runs of f32 have any length and alignment; an output may be an input. Sums are taken by vector lanes: callers keep
// runs short and add their sums in f64.

/// Longest unstaged run of a row: keeps f32 sums short.
inline constexpr std::int64_t direct_columns = 2048;

/// Floats of a scratch row: whole cache lines, so that threads do not share one.
[[nodiscard]] constexpr std::int64_t scratch_row(std::int64_t columns) { return (columns + 15) / 16 * 16; }

/// Sums over a row, or means.
struct NormTerms {
  float h, h_xhat;
};

/// Each works on elements 0 <= i < count.
struct Runs {
  void (*widen)(const bf16* x, std::int64_t count, float* y);
  /// y = x, rounded as narrow<bf16>() does.
  void (*narrow)(const float* x, std::int64_t count, bf16* y);
  /// y = x, streamed; `y` must be 64-byte aligned. Call stream_fence() afterwards.
  void (*stream)(const float* x, std::int64_t count, float* y);

  void (*add)(const float* x, std::int64_t count, float* y);
  /// y = (y + a) + b.
  void (*add_two)(const float* a, const float* b, std::int64_t count, float* y);
  /// y += (a + b) + (c + d).
  void (*add_four)(const float* a, const float* b, const float* c, const float* d, std::int64_t count, float* y);
  /// y += factor x.
  void (*add_scaled)(const float* x, float factor, std::int64_t count, float* y);
  void (*add_constant)(float constant, std::int64_t count, float* y);
  void (*multiply)(const float* x, std::int64_t count, float* y);
  /// y = factor x.
  void (*scale)(const float* x, float factor, std::int64_t count, float* y);
  void (*divide)(float divisor, std::int64_t count, float* y);
  /// y = of_a a + of_b b.
  void (*blend)(const float* a, float of_a, const float* b, float of_b, std::int64_t count, float* y);
  /// y = max(x, y); NaN if either is.
  void (*keep_larger)(const float* x, std::int64_t count, float* y);
  /// y = factor x; returns whether an x is infinite or NaN.
  bool (*unscale)(const float* x, float factor, std::int64_t count, float* y);

  /// The sum of x. Prefetches `count` / 2 floats at `ahead` unless it is null, as do the functions below.
  float (*sum)(const float* x, std::int64_t count, const float* ahead);
  /// The sum of (x - mean)^2.
  float (*squared_deviations)(const float* x, float mean, std::int64_t count, const float* ahead);
  float (*dot)(const float* a, const float* b, std::int64_t count);
  /// -infinity if count is 0; may ignore NaN.
  float (*largest)(const float* x, std::int64_t count);

  /// y = exp(x - largest), unless `y` is null; returns the sum.
  float (*exp)(const float* x, float largest, std::int64_t count, float* y);
  /// y = exp(x - shift) factor.
  void (*softmax)(const float* x, float shift, float factor, std::int64_t count, float* y);
  /// dx = y (dy - projection).
  void (*softmax_backward)(const float* y, const float* dy, float projection, std::int64_t count, float* dx);
  void (*sigmoid)(const float* x, std::int64_t count, float* y);

  /// y = gamma (x - mean) rstd + beta. `streaming`: streamed; call stream_fence() afterwards.
  void (*normalize)(const float* x, const float* gamma, const float* beta, float mean, float rstd, std::int64_t count,
                    float* y, bool streaming);
  /// y = a + b, also streamed to `streamed` unless it is null; returns the sum of y. Prefetches `count` floats at
  /// `ahead_a` and half as many at `ahead_b`. Call stream_fence() afterwards.
  float (*add_rows)(const float* a, const float* b, std::int64_t count, float* y, float* streamed, const float* ahead_a,
                    const float* ahead_b);
  /// sum = x + r rounded to bf16, and wide = sum.
  void (*add_rows_bf16)(const bf16* x, const bf16* r, std::int64_t count, bf16* sum, float* wide);
  /// With xhat = (x - mean) rstd and h = dy gamma: dgamma += dy xhat, dbeta += dy; returns the sums of h and h xhat.
  NormTerms (*norm_sums)(const float* dy, const float* x, const float* gamma, float mean, float rstd,
                         std::int64_t count, float* dgamma, float* dbeta);
  /// dx = rstd ((h - means.h) - xhat means.h_xhat).
  void (*norm_dx)(const float* dy, const float* x, const float* gamma, float mean, float rstd, NormTerms means,
                  std::int64_t count, float* dx);
};

[[nodiscard]] const Runs& runs();

// Conversion between narrow types and f32.

/// Types that widen_elements() reads: f16, bf16, f8_e4m3 and f8_e5m2.
[[nodiscard]] bool widens_to_f32(DType type);
/// Types that narrow_elements() writes: f16 and bf16.
[[nodiscard]] bool narrows_from_f32(DType type);

/// Values of an 8-bit type by code; of a 4-bit type by the low half of a byte.
[[nodiscard]] std::array<float, 256> values_by_code(DType type);

/// Exact.
void widen_elements(DType type, const std::byte* from, std::int64_t count, float* to);

/// Rounded to nearest even; too large values become infinities.
void narrow_elements(DType type, const float* from, std::int64_t count, std::byte* to);

/// Rounds as narrow_elements().
void round_elements(DType type, std::int64_t count, float* values);

// Arithmetic of elementwise ops, also as the last step of other ops.

/// An op's kernel for the instruction set in use. An output may be an input.
struct PointwiseKernel {
  using Function = void (*)(const float* const* x, float factor, std::int64_t count, float* const* y);
  /// y[j][i] from all x[k][i], i < count.
  Function block = nullptr;
  /// Same bits, streamed; may be null. Call stream_fence() afterwards.
  Function streaming = nullptr;
  /// y is x: a block stored from a buffer can be stored from x's buffer.
  bool copies = false;
};

/// For an op of reference/ops/pointwise.h; `form` applies to GELU. Without a function for other ops.
[[nodiscard]] PointwiseKernel pointwise_kernel(const OpKind& kind, GeluForm form = GeluForm::tanh);

/// Factors of one step.
struct AdamWFactors {
  float beta1, one_minus_beta1, beta2, one_minus_beta2;
  float inverse_bc1, inverse_bc2;  ///< 1 / (1 - beta^step)
  float epsilon, lr;
  float weight_decay, l2;  ///< decoupled; part of the gradient: one of them is 0
  float clip;              ///< factor of the gradient
};
struct LionFactors {
  float beta1, one_minus_beta1, beta2, one_minus_beta2, weight_decay, lr;
};
/// The step is of_d d + of_m m': m' alone, or Nesterov's step.
struct SgdFactors {
  float momentum, weight_decay, of_d, of_m, lr;
};

/// Updates moments m and v, and weights w, of `count` elements.
void update_run(const float* g, const AdamWFactors& factors, std::int64_t count, float* w, float* m, float* v);
void update_run(const float* g, const LionFactors& factors, std::int64_t count, float* w, float* m, float* v);
void update_run(const float* g, const SgdFactors& factors, std::int64_t count, float* w, float* m, float* v);

/// Summed in f64.
[[nodiscard]] double sum_of_squares(const float* g, std::int64_t count);

}  // namespace gpubench::cpu
