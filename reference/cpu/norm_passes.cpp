#include "reference/cpu/norm_passes.h"

#include <algorithm>

#include "reference/cpu/parallel.h"
#include "reference/cpu/vector_avx512.h"

namespace gpubench::cpu {

// Two independent sums here and below, so that an addition does not wait for the previous one.
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

namespace gpubench::cpu::avx512 {

#if defined(GPUBENCH_HAS_AVX512_CODE)

namespace {

// Four independent sums, so that an addition does not wait for the previous one.
constexpr std::int64_t step = 4 * lanes;

[[gnu::always_inline]] GPUBENCH_AVX512 inline float total_of(const __m512 (&sums)[4]) {
  return total(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

// Prefetches two lines, half of what a step reads.
[[gnu::always_inline]] inline void prefetch(const float* ahead) {
  __builtin_prefetch(ahead, 0, 3);
  __builtin_prefetch(ahead + lanes, 0, 3);
}

}  // namespace

GPUBENCH_AVX512 float sum(const float* x, std::int64_t count, const float* ahead) {
  __m512 sums[4] = {all(0.0F), all(0.0F), all(0.0F), all(0.0F)};
  const std::int64_t whole = count / step * step;
  for (std::int64_t i = 0; i < whole; i += step) {
    prefetch(ahead + i / 2);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) sums[j] = _mm512_add_ps(sums[j], _mm512_loadu_ps(x + i + j * lanes));
  }
  for (std::int64_t i = whole; i < count; i += lanes) {
    sums[0] = _mm512_add_ps(sums[0], _mm512_maskz_loadu_ps(first_lanes(count - i), x + i));
  }
  return total_of(sums);
}

GPUBENCH_AVX512 float add(const float* x, const float* r, std::int64_t count, float* sum, float* streamed,
                          const float* ahead_x, const float* ahead_r) {
  __m512 sums[4] = {all(0.0F), all(0.0F), all(0.0F), all(0.0F)};
  const auto few = [&](std::int64_t begin, std::int64_t end) GPUBENCH_AVX512 {
    for (std::int64_t i = begin; i < end; i += lanes) {
      const __mmask16 mask = first_lanes(end - i);
      const __m512 value = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, x + i), _mm512_maskz_loadu_ps(mask, r + i));
      _mm512_mask_storeu_ps(sum + i, mask, value);
      if (streamed != nullptr) _mm512_mask_storeu_ps(streamed + i, mask, value);
      sums[0] = _mm512_add_ps(sums[0], value);
    }
  };
  const std::int64_t head = streamed != nullptr ? std::min(count, floats_to_line(streamed)) : 0;
  const std::int64_t end = head + (count - head) / step * step;
  few(0, head);
  for (std::int64_t i = head; i < end; i += step) {
    prefetch(ahead_x + i);
    prefetch(ahead_x + i + 2 * lanes);
    prefetch(ahead_r + i / 2);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const std::int64_t at = i + j * lanes;
      const __m512 value = _mm512_add_ps(_mm512_loadu_ps(x + at), _mm512_loadu_ps(r + at));
      _mm512_storeu_ps(sum + at, value);
      if (streamed != nullptr) _mm512_stream_ps(streamed + at, value);
      sums[j] = _mm512_add_ps(sums[j], value);
    }
  }
  few(end, count);
  return total_of(sums);
}

GPUBENCH_AVX512 float squared_deviations(const float* x, float mean, std::int64_t count, const float* ahead) {
  const __m512 means = all(mean);
  __m512 sums[4] = {all(0.0F), all(0.0F), all(0.0F), all(0.0F)};
  const std::int64_t whole = count / step * step;
  for (std::int64_t i = 0; i < whole; i += step) {
    prefetch(ahead + (count + i) / 2);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const __m512 deviation = _mm512_sub_ps(_mm512_loadu_ps(x + i + j * lanes), means);
      sums[j] = _mm512_fmadd_ps(deviation, deviation, sums[j]);
    }
  }
  for (std::int64_t i = whole; i < count; i += lanes) {
    const __mmask16 mask = first_lanes(count - i);
    const __m512 deviation = _mm512_maskz_sub_ps(mask, _mm512_maskz_loadu_ps(mask, x + i), means);
    sums[0] = _mm512_fmadd_ps(deviation, deviation, sums[0]);
  }
  return total_of(sums);
}

GPUBENCH_AVX512 void stream_normalized(const float* x, const float* gamma, const float* beta, float mean, float rstd,
                                       std::int64_t count, float* y) {
  const __m512 means = all(mean);
  const __m512 scales = all(rstd);
  const auto result = [&](__mmask16 mask, std::int64_t i) GPUBENCH_AVX512 {
    const __m512 deviation = _mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), means);
    return _mm512_fmadd_ps(_mm512_maskz_loadu_ps(mask, gamma + i), _mm512_mul_ps(deviation, scales),
                           _mm512_maskz_loadu_ps(mask, beta + i));
  };
  const std::int64_t head = std::min(count, floats_to_line(y));
  if (head > 0) _mm512_mask_storeu_ps(y, first_lanes(head), result(first_lanes(head), 0));
  const std::int64_t end = head + (count - head) / lanes * lanes;
  for (std::int64_t i = head; i < end; i += lanes) _mm512_stream_ps(y + i, result(0xFFFF, i));
  if (end < count) _mm512_mask_storeu_ps(y + end, first_lanes(count - end), result(first_lanes(count - end), end));
}

#else

float sum(const float*, std::int64_t, const float*) { return 0.0F; }
float add(const float*, const float*, std::int64_t, float*, float*, const float*, const float*) { return 0.0F; }
float squared_deviations(const float*, float, std::int64_t, const float*) { return 0.0F; }
void stream_normalized(const float*, const float*, const float*, float, float, std::int64_t, float*) {}

#endif

}  // namespace gpubench::cpu::avx512
