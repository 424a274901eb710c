// The passes of layer normalization over one block of a row, for whatever machine: what the norm and the ops that
// normalize their own result are made of. norm_avx512.h has them for one kind.
#pragma once

#include <cstdint>

#include "reference/cpu/bf16.h"

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
