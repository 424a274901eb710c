#include "reference/cpu/norm_passes.h"

#include "reference/cpu/vector_clones.h"

namespace gpubench::cpu {

// Two independent sums, so that an addition need not wait for the one before it; so below.
GPUBENCH_VECTOR_CLONES
float sum_block(const float* x, std::int64_t count) {
  const std::int64_t half = count / 2;
  float a = 0.0F;
  float b = 0.0F;
#pragma omp simd reduction(+ : a, b)
  for (std::int64_t i = 0; i < half; ++i) {
    a += x[i];
    b += x[i + half];
  }
  return a + b + (count > 2 * half ? x[count - 1] : 0.0F);
}

GPUBENCH_VECTOR_CLONES
float squared_deviation_block(const float* x, float mean, std::int64_t count) {
  const std::int64_t half = count / 2;
  float a = 0.0F;
  float b = 0.0F;
#pragma omp simd reduction(+ : a, b)
  for (std::int64_t i = 0; i < half; ++i) {
    a += (x[i] - mean) * (x[i] - mean);
    b += (x[i + half] - mean) * (x[i + half] - mean);
  }
  const float last = count > 2 * half ? x[count - 1] - mean : 0.0F;
  return a + b + last * last;
}

GPUBENCH_VECTOR_CLONES
void normalize_block(const float* x, const float* gamma, const float* beta, float mean, float rstd, std::int64_t count,
                     float* y) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) y[i] = gamma[i] * ((x[i] - mean) * rstd) + beta[i];
}

GPUBENCH_VECTOR_CLONES
void add_block(const float* x, const float* r, std::int64_t count, float* sum) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] = x[i] + r[i];
}

GPUBENCH_VECTOR_CLONES
void add_block_bf16(const bf16* x, const bf16* r, std::int64_t count, bf16* sum, float* wide) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) {
    sum[i] = narrow<bf16>(widen(x[i]) + widen(r[i]));
    wide[i] = widen(sum[i]);
  }
}

}  // namespace gpubench::cpu
