// The passes of layer normalization over one block of a row, for any machine, used by the norms and by ops that
// normalize their own result. Namespace avx512 has a second version of them.
#pragma once

#include <cstdint>

#include "reference/cpu/block_io.h"

namespace gpubench::cpu {

/// Longest block where nothing is staged; keeps f32 sums short.
inline constexpr std::int64_t direct_norm_block = 2048;

/// Sum of x[0, count).
[[nodiscard]] float sum_block(const float* x, std::int64_t count);
/// Sum of (x[i] - mean)^2.
[[nodiscard]] float squared_deviation_block(const float* x, float mean, std::int64_t count);
/// y[i] = gamma[i] ((x[i] - mean) rstd) + beta[i].
void normalize_block(const float* x, const float* gamma, const float* beta, float mean, float rstd, std::int64_t count,
                     float* y);
/// sum[i] = x[i] + r[i].
void add_block(const float* x, const float* r, std::int64_t count, float* sum);
/// sum[i] = x[i] + r[i] rounded to bf16, and wide[i] the same as f32.
void add_block_bf16(const bf16* x, const bf16* r, std::int64_t count, bf16* sum, float* wide);

}  // namespace gpubench::cpu

// Layer normalization's passes written for AVX-512, with the next row's loads spread over the passes over this one.
//
// A row is read three times from the first-level cache. Without prefetching, the processor fetches the next row only
// when it is read, and memory idles meanwhile. Call these only where available().

namespace gpubench::cpu::avx512 {

/// Sum of x[0, count). Prefetches the first half of the `count` elements at `ahead`.
[[nodiscard]] float sum(const float* x, std::int64_t count, const float* ahead);
/// sum[i] = x[i] + r[i], also stored around the caches at `streamed` where that is not null; returns their sum.
/// Prefetches the `count` elements at `ahead_x` and the first half of those at `ahead_r`. Call stream_fence() when
/// done.
[[nodiscard]] float add(const float* x, const float* r, std::int64_t count, float* sum, float* streamed,
                        const float* ahead_x, const float* ahead_r);
/// Sum of (x[i] - mean)^2. Prefetches the second half.
[[nodiscard]] float squared_deviations(const float* x, float mean, std::int64_t count, const float* ahead);
/// y[i] = gamma[i] ((x[i] - mean) rstd) + beta[i], stored around the caches. Call stream_fence() when done.
void stream_normalized(const float* x, const float* gamma, const float* beta, float mean, float rstd,
                       std::int64_t count, float* y);

}  // namespace gpubench::cpu::avx512
