#include "reference/cpu/vector_avx512.h"

#include <algorithm>

#include "reference/cpu/usable_isa.h"
#include "reference/cpu/vector_math.h"

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

namespace {

// Without prefetching 4 KiB ahead, the arithmetic fills the window in which the processor would issue the next loads.
constexpr std::int64_t prefetch_bytes = 4096;

// x / (1 + e^-2t), as in vector_math.h.
[[gnu::always_inline]] GPUBENCH_AVX512 inline __m512 gelu_lanes(__m512 x) {
  const __m512 numerator = at_least(-gelu_limit, x);
  const __m512 inner = at_most(gelu_limit, numerator);
  // e^-2t = 2^(inner slope)
  const __m512 slope = _mm512_fmadd_ps(_mm512_mul_ps(inner, inner), all(-2.0F * gelu_c * gelu_cubic * log2_e),
                                       all(-2.0F * gelu_c * log2_e));
  return _mm512_div_ps(numerator, _mm512_add_ps(all(1.0F), exp2_of_product(inner, slope)));
}

GPUBENCH_AVX512 void gelu_some(const float* x, std::int64_t count, float* y) {
  const __mmask16 mask = first_lanes(count);
  _mm512_mask_storeu_ps(y, mask, gelu_lanes(_mm512_maskz_loadu_ps(mask, x)));
}

}  // namespace

GPUBENCH_AVX512 void gelu_tanh(const float* x, const float* /*none*/, float /*unused*/, std::int64_t count, float* y) {
  const std::int64_t whole = count / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes) _mm512_storeu_ps(y + i, gelu_lanes(_mm512_loadu_ps(x + i)));
  gelu_some(x + whole, count - whole, y + whole);
}

GPUBENCH_AVX512 void stream_gelu_tanh(const float* x, const float* /*none*/, float /*unused*/, std::int64_t count,
                                      float* y) {
  const std::int64_t head = std::min(count, floats_to_line(y));
  gelu_some(x, head, y);
  const std::int64_t end = head + (count - head) / lanes * lanes;
#pragma GCC unroll 2
  for (std::int64_t i = head; i < end; i += lanes) {
    __builtin_prefetch(reinterpret_cast<const std::byte*>(x + i) + prefetch_bytes, 0, 3);
    _mm512_stream_ps(y + i, gelu_lanes(_mm512_loadu_ps(x + i)));
  }
  gelu_some(x + end, count - end, y + end);
}

#else

void gelu_tanh(const float*, const float*, float, std::int64_t, float*) {}
void stream_gelu_tanh(const float*, const float*, float, std::int64_t, float*) {}

#endif

}  // namespace gpubench::cpu::avx512
