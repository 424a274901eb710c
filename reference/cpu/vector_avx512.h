// What the kernels written for AVX-512 share; they exist where vectorized loops are slower than the memory or the
// matrix units.
//
// The gain: limits that cost one instruction each and pass NaN on, and base-2 arguments from the start, so that the
// reduction is exact in two instructions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpubench::cpu::avx512 {

/// True when the processor runs what is marked GPUBENCH_AVX512: it announces the instructions, and the kernels
/// were right in a trial (usable_isa.h). It may be called only then.
[[nodiscard]] bool available();
/// The same with avx512bf16, which the softmax takes as well.
[[nodiscard]] bool available_bf16();

/// The announcements alone, for the trial.
[[nodiscard]] bool announced();
[[nodiscard]] bool announced_bf16();

/// The names that these kernels are barred by.
inline constexpr const char* own_isa = "avx512";
inline constexpr const char* own_isa_bf16 = "avx512_bf16";

// Those of softmax.h, where available().
float exp_block(const float* x, float largest, std::int64_t count, float* y);  ///< y may be null: the sum alone
void softmax_block(const float* x, float shift, float factor, std::int64_t count, float* y);

}  // namespace gpubench::cpu::avx512

#if defined(__x86_64__) && defined(__GNUC__)
#define GPUBENCH_HAS_AVX512_CODE 1
#include <immintrin.h>

#include "reference/cpu/vector_math.h"

#define GPUBENCH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define GPUBENCH_AVX512_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace gpubench::cpu::avx512 {

[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 all(float x) { return _mm512_set1_ps(x); }

inline constexpr std::int64_t lanes = 16;

/// Selects `count` lanes, 0 to 16.
[[nodiscard]] inline __mmask16 first_lanes(std::int64_t count) {
  return static_cast<__mmask16>((1U << static_cast<unsigned>(std::min(count, lanes))) - 1U);
}

/// How many floats there are from `to` up to the next whole line, where vectors can be streamed.
[[nodiscard]] inline std::int64_t floats_to_line(const float* to) {
  return static_cast<std::int64_t>((0U - reinterpret_cast<std::uintptr_t>(to)) % 64U / sizeof(float));
}

/// The larger; b where one of them is NaN. Masked, because GCC 12 warns of the plain intrinsics' undefined
/// operand; the same below.
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 larger(__m512 a, __m512 b) {
  return _mm512_maskz_max_ps(0xFFFF, a, b);
}

/// x or a limit; x where it is NaN.
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 at_least(float limit, __m512 x) { return larger(all(limit), x); }
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 at_most(float limit, __m512 x) {
  return _mm512_maskz_min_ps(0xFFFF, all(limit), x);
}

/// 2^f = 1 + f p(f) on [-1/2, 1/2], 1.6 units of 2^-24: a minimax fit made for this file, as those of vector_math.h.
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 exp2_of_fraction(__m512 f) {
  __m512 p = all(0.00132694084F);
  p = _mm512_fmadd_ps(p, f, all(0.00967129413F));
  p = _mm512_fmadd_ps(p, f, all(0.0555071123F));
  p = _mm512_fmadd_ps(p, f, all(0.240222469F));
  p = _mm512_fmadd_ps(p, f, all(0.693147004F));
  return _mm512_fmadd_ps(p, f, all(1.0F));
}

/// 2^(a b) within 3 ulp of the unrounded product's, for |a b| <= 126. NaN may come out as any number.
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 exp2_of_product(__m512 a, __m512 b) {
  const __m512 shifted = _mm512_fmadd_ps(a, b, all(exp_shifter));
  const __m512 f = _mm512_fmsub_ps(a, b, _mm512_sub_ps(shifted, all(exp_shifter)));
  const __m512i exponent = _mm512_maskz_slli_epi32(0xFFFF, _mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(exp2_of_fraction(f)), exponent));
}

/// 2^x within 3 ulp for x <= 128, subnormals included; 0 for -infinity, NaN for NaN.
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 exp2(__m512 x) {
  const __m512 inner = at_least(-200.0F, x);
  const __m512 whole = _mm512_sub_ps(_mm512_add_ps(inner, all(exp_shifter)), all(exp_shifter));
  return _mm512_maskz_scalef_ps(0xFFFF, exp2_of_fraction(_mm512_sub_ps(inner, whole)), whole);
}

/// e^x within 3 ulp, subnormals included; 0 for -infinity, infinity above 88.73, NaN for NaN.
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 exp_of(__m512 x) {
  constexpr float log2_e_rest = 1.92596299e-8F;  // log2 e - log2_e
  const __m512 inner = at_most(150.0F, at_least(-150.0F, x));
  const __m512 shifted = _mm512_fmadd_ps(inner, all(log2_e), all(exp_shifter));
  const __m512 whole = _mm512_sub_ps(shifted, all(exp_shifter));
  const __m512 f = _mm512_fmadd_ps(inner, all(log2_e_rest), _mm512_fmsub_ps(inner, all(log2_e), whole));
  return _mm512_maskz_scalef_ps(0xFFFF, exp2_of_fraction(f), whole);
}

/// The sum of all lanes, by halves.
[[gnu::always_inline]] GPUBENCH_AVX512 inline float total(__m512 x) {
  const __m256 halves =
      _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xFF, x, 0), _mm512_maskz_extractf32x8_ps(0xFF, x, 1));
  const __m128 quarters = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
  const __m128 pairs = _mm_add_ps(quarters, _mm_movehl_ps(quarters, quarters));
  return _mm_cvtss_f32(_mm_add_ss(pairs, _mm_movehdup_ps(pairs)));
}

/// The largest lane; NaN may be ignored.
[[gnu::always_inline]] GPUBENCH_AVX512 inline float largest(__m512 x) {
  const __m256 halves =
      _mm256_max_ps(_mm512_maskz_extractf32x8_ps(0xFF, x, 0), _mm512_maskz_extractf32x8_ps(0xFF, x, 1));
  const __m128 quarters = _mm_max_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps(halves, 1));
  const __m128 pairs = _mm_max_ps(quarters, _mm_movehl_ps(quarters, quarters));
  return _mm_cvtss_f32(_mm_max_ss(pairs, _mm_movehdup_ps(pairs)));
}

}  // namespace gpubench::cpu::avx512

#endif
