// What the kernels share that are written for AVX-512 because vectorized loops fall short of the memory or of the
// matrix units.
//
// What is gained: limits that cost one instruction each and pass NaN on, and arguments that are base-2 from the start,
// so that the reduction is exact in two instructions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace gpubench::cpu::avx512 {

/// True when the processor runs what is marked GPUBENCH_AVX512. It may be called only then.
[[nodiscard]] bool available();

}  // namespace gpubench::cpu::avx512

#if defined(__x86_64__) && defined(__GNUC__)
#define GPUBENCH_HAS_AVX512_CODE 1
#include <immintrin.h>

#define GPUBENCH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

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

/// x or a limit; x where it is NaN. Masked, because GCC 12 takes the plain intrinsics' don't-care operand for a
/// mistake.
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 at_least(float limit, __m512 x) {
  return _mm512_maskz_max_ps(0xFFFF, all(limit), x);
}
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 at_most(float limit, __m512 x) {
  return _mm512_maskz_min_ps(0xFFFF, all(limit), x);
}

/// 2^(a b) within 3 ulp of the unrounded product's, for |a b| <= 126. NaN may come out as any number.
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 exp2_of_product(__m512 a, __m512 b) {
  // Adding 1.5 * 2^23 rounds to a whole number and leaves that in the low bits of the sum.
  const __m512 shifted = _mm512_fmadd_ps(a, b, all(12582912.0F));
  const __m512 f = _mm512_fmsub_ps(a, b, _mm512_sub_ps(shifted, all(12582912.0F)));
  // 2^f = 1 + f p on [-1/2, 1/2], 1.6 units of 2^-24 (a minimax fit made for this file, see vector_math.h)
  __m512 p = all(0.00132694084F);
  p = _mm512_fmadd_ps(p, f, all(0.00967129413F));
  p = _mm512_fmadd_ps(p, f, all(0.0555071123F));
  p = _mm512_fmadd_ps(p, f, all(0.240222469F));
  p = _mm512_fmadd_ps(p, f, all(0.693147004F));
  p = _mm512_fmadd_ps(p, f, all(1.0F));
  const __m512i exponent = _mm512_maskz_slli_epi32(0xFFFF, _mm512_castps_si512(shifted), 23);
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(p), exponent));
}

}  // namespace gpubench::cpu::avx512

#endif
