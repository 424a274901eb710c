// Blocks of a row of exponentials: what softmax and cross-entropy are made of.
#pragma once

#include <cstdint>

namespace gpubench::cpu {

/// Longest block where nothing is staged.
inline constexpr std::int64_t direct_columns = 2048;

/// Floats of a scratch row: whole cache lines, so that no two threads share one.
[[nodiscard]] constexpr std::int64_t scratch_row(std::int64_t columns) { return (columns + 15) / 16 * 16; }

/// Passes over NaN, which the functions below then spread.
float max_block(const float* x, std::int64_t count);

/// The sum of exp(x - largest).
float sum_exp_block(const float* x, float largest, std::int64_t count);

/// y = exp(x - shift) factor.
void softmax_block(const float* x, float shift, float factor, std::int64_t count, float* y);

/// y = exp(x - largest); returns the sum of y.
float exp_block(const float* x, float largest, std::int64_t count, float* y);

/// y = x factor.
void multiply_block(const float* x, float factor, std::int64_t count, float* y);

}  // namespace gpubench::cpu
