// Arithmetic on runs of f32: the loops that ops share, in Highway, for the instruction set in use.
//
// Runs may have any length and alignment, and an output may be an input. Sums are taken by vector lanes: callers keep
// runs short and add their sums in f64.
#pragma once

#include <cstdint>

#include "reference/cpu/block_io.h"

namespace gpubench::cpu {

/// Longest run that a row is read in where nothing is staged: keeps sums in f32 short.
inline constexpr std::int64_t direct_columns = 2048;

/// Floats of a scratch row: whole cache lines, so that no two threads share one.
[[nodiscard]] constexpr std::int64_t scratch_row(std::int64_t columns) { return (columns + 15) / 16 * 16; }

/// Sums over a row, or means.
struct NormTerms {
  float h, h_xhat;
};

/// Each works on elements 0 <= i < count.
struct Runs {
  /// y = x.
  void (*widen)(const bf16* x, std::int64_t count, float* y);
  /// y = x, rounded as narrow<bf16>() does.
  void (*narrow)(const float* x, std::int64_t count, bf16* y);
  /// y = x around the caches; `y` begins a line of 64 bytes. Call stream_fence() when done.
  void (*stream)(const float* x, std::int64_t count, float* y);

  /// y += x.
  void (*add)(const float* x, std::int64_t count, float* y);
  /// y = (y + a) + b.
  void (*add_two)(const float* a, const float* b, std::int64_t count, float* y);
  /// y += (a + b) + (c + d).
  void (*add_four)(const float* a, const float* b, const float* c, const float* d, std::int64_t count, float* y);
  /// y += factor x.
  void (*add_scaled)(const float* x, float factor, std::int64_t count, float* y);
  /// y += constant.
  void (*add_constant)(float constant, std::int64_t count, float* y);
  /// y *= x.
  void (*multiply)(const float* x, std::int64_t count, float* y);
  /// y = factor x.
  void (*scale)(const float* x, float factor, std::int64_t count, float* y);
  /// y /= divisor.
  void (*divide)(float divisor, std::int64_t count, float* y);
  /// y = of_a a + of_b b.
  void (*blend)(const float* a, float of_a, const float* b, float of_b, std::int64_t count, float* y);
  /// y = max(x, y); a NaN of either spreads.
  void (*keep_larger)(const float* x, std::int64_t count, float* y);
  /// y = factor x; true where an x is infinite or NaN.
  bool (*unscale)(const float* x, float factor, std::int64_t count, float* y);

  /// The sum of x. Where `ahead` is not null, prefetches `count` / 2 floats there; the same below.
  float (*sum)(const float* x, std::int64_t count, const float* ahead);
  /// The sum of (x - mean)^2.
  float (*squared_deviations)(const float* x, float mean, std::int64_t count, const float* ahead);
  /// The sum of a b.
  float (*dot)(const float* a, const float* b, std::int64_t count);
  /// -infinity of none; may pass over NaN.
  float (*largest)(const float* x, std::int64_t count);

  /// y = exp(x - largest), or nothing where `y` is null; returns the sum.
  float (*exp)(const float* x, float largest, std::int64_t count, float* y);
  /// y = exp(x - shift) factor.
  void (*softmax)(const float* x, float shift, float factor, std::int64_t count, float* y);
  /// dx = y (dy - projection).
  void (*softmax_backward)(const float* y, const float* dy, float projection, std::int64_t count, float* dx);
  /// y = 1 / (1 + exp(-x)).
  void (*sigmoid)(const float* x, std::int64_t count, float* y);

  /// y = gamma (x - mean) rstd + beta. `streaming`: around the caches; call stream_fence() when done.
  void (*normalize)(const float* x, const float* gamma, const float* beta, float mean, float rstd, std::int64_t count,
                    float* y, bool streaming);
  /// y = a + b, also stored around the caches at `streamed` where that is not null; returns the sum of y. Prefetches
  /// `count` floats at `ahead_a`, and half as many at `ahead_b`. Call stream_fence() when done.
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

}  // namespace gpubench::cpu
