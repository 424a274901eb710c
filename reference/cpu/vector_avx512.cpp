#include "reference/cpu/vector_avx512.h"

#include "reference/cpu/usable_isa.h"

namespace gpubench::cpu::avx512 {

#if defined(GPUBENCH_HAS_AVX512_CODE)
bool announced() {
  // What the loader checks for GPUBENCH_VECTOR_CLONES.
  return __builtin_cpu_supports("avx512f") > 0 && __builtin_cpu_supports("avx512bw") > 0 &&
         __builtin_cpu_supports("avx512vl") > 0 && __builtin_cpu_supports("avx512dq") > 0;
}
bool announced_bf16() { return announced() && __builtin_cpu_supports("avx512bf16") > 0; }
#else
bool announced() { return false; }
bool announced_bf16() { return false; }
#endif

bool available() {
  static const bool answer = announced() && own_kernels_usable(own_isa);
  return answer;
}

bool available_bf16() {
  static const bool answer = announced_bf16() && available() && own_kernels_usable(own_isa_bf16);
  return answer;
}

#if defined(GPUBENCH_HAS_AVX512_CODE)

GPUBENCH_AVX512 float exp_block(const float* x, float largest, std::int64_t count, float* y) {
  const __m512 shift = all(largest);
  __m512 sums[2] = {all(0.0F), all(0.0F)};
  const auto step = [&](std::int64_t i, __mmask16 mask, __m512& sum) GPUBENCH_AVX512 {
    const __m512 e = _mm512_maskz_mov_ps(mask, exp_of(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), shift)));
    if (y != nullptr) _mm512_mask_storeu_ps(y + i, mask, e);
    sum = _mm512_add_ps(sum, e);
  };
  std::int64_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    step(i, 0xFFFF, sums[0]);
    step(i + lanes, 0xFFFF, sums[1]);
  }
  for (; i < count; i += lanes) step(i, first_lanes(count - i), sums[0]);
  return total(_mm512_add_ps(sums[0], sums[1]));
}

GPUBENCH_AVX512 void softmax_block(const float* x, float shift, float factor, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; i += lanes) {
    const __mmask16 mask = first_lanes(count - i);
    const __m512 e = exp_of(_mm512_sub_ps(_mm512_maskz_loadu_ps(mask, x + i), all(shift)));
    _mm512_mask_storeu_ps(y + i, mask, _mm512_mul_ps(e, all(factor)));
  }
}

#else

float exp_block(const float*, float, std::int64_t, float*) { return 0.0F; }
void softmax_block(const float*, float, float, std::int64_t, float*) {}

#endif

}  // namespace gpubench::cpu::avx512
