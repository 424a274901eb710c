#include "reference/cpu/pointwise_avx512.h"

#include <algorithm>
#include <cstddef>

#include "reference/cpu/vector_avx512.h"
#include "reference/cpu/vector_math.h"

namespace gpubench::cpu::avx512 {

#if defined(GPUBENCH_HAS_AVX512_CODE)

namespace {

// Without prefetching 4 KiB ahead, the arithmetic fills the window in which the processor would issue the next loads.
constexpr std::int64_t prefetch_bytes = 4096;

constexpr float slope_1 = 2.0F * gelu_c * log2_e;
constexpr float slope_3 = slope_1 * gelu_cubic;

// x / (1 + e^-2t), as in vector_math.h.
struct GeluTanh {
  static constexpr int inputs = 1;
  [[gnu::always_inline]] GPUBENCH_AVX512 static inline __m512 of(__m512 x, __m512 /*none*/) {
    const __m512 numerator = at_least(-gelu_limit, x);
    const __m512 inner = at_most(gelu_limit, numerator);
    // e^-2t = 2^(inner slope)
    const __m512 slope = _mm512_fmadd_ps(_mm512_mul_ps(inner, inner), all(-slope_3), all(-slope_1));
    return _mm512_div_ps(numerator, _mm512_add_ps(all(1.0F), exp2_of_product(inner, slope)));
  }
};

// dy (s + x s (1 - s) 2t'), from e^-|2t| as in vector_math.h.
struct GeluTanhBackward {
  static constexpr int inputs = 2;
  [[gnu::always_inline]] GPUBENCH_AVX512 static inline __m512 of(__m512 x, __m512 dy) {
    const __m512 inner = at_most(gelu_limit, at_least(-gelu_limit, x));
    const __m512 square = _mm512_mul_ps(inner, inner);
    const __m512 size = _mm512_abs_ps(inner);
    const __m512 slope = _mm512_fmadd_ps(square, all(-slope_3), all(-slope_1));
    const __m512 e = exp2_of_product(size, slope);
    const __m512 larger_part = _mm512_div_ps(all(1.0F), _mm512_add_ps(all(1.0F), e));
    const __m512 smaller_part = _mm512_mul_ps(e, larger_part);
    const __mmask16 negative = _mm512_cmp_ps_mask(inner, all(0.0F), _CMP_LT_OQ);
    const __m512 s = _mm512_mask_blend_ps(negative, larger_part, smaller_part);
    const __m512 two_t_prime = _mm512_fmadd_ps(square, all(6.0F * gelu_c * gelu_cubic), all(2.0F * gelu_c));
    const __m512 curve = _mm512_mul_ps(_mm512_mul_ps(inner, two_t_prime), _mm512_mul_ps(larger_part, smaller_part));
    return _mm512_mul_ps(dy, _mm512_add_ps(s, curve));
  }
};

struct Silu {
  static constexpr int inputs = 1;
  [[gnu::always_inline]] GPUBENCH_AVX512 static inline __m512 of(__m512 x, __m512 /*none*/) {
    return _mm512_div_ps(x, _mm512_add_ps(all(1.0F), exp_of(_mm512_sub_ps(all(0.0F), x))));
  }
};

struct Swiglu {
  static constexpr int inputs = 2;
  [[gnu::always_inline]] GPUBENCH_AVX512 static inline __m512 of(__m512 gate, __m512 up) {
    return _mm512_mul_ps(Silu::of(gate, gate), up);
  }
};

// dy s (1 + x (1 - s)); 1 - s would cancel, and e s is no number where e overflows.
struct SiluBackward {
  static constexpr int inputs = 2;
  [[gnu::always_inline]] GPUBENCH_AVX512 static inline __m512 of(__m512 x, __m512 dy) {
    const __m512 e = exp_of(_mm512_sub_ps(all(0.0F), x));
    const __m512 s = _mm512_div_ps(all(1.0F), _mm512_add_ps(all(1.0F), e));
    const __mmask16 large = _mm512_cmp_ps_mask(e, all(1e30F), _CMP_GT_OQ);
    const __m512 rest = _mm512_mask_blend_ps(large, _mm512_mul_ps(e, s), all(1.0F));
    return _mm512_mul_ps(dy, _mm512_mul_ps(s, _mm512_fmadd_ps(x, rest, all(1.0F))));
  }
};

template <class Op>
GPUBENCH_AVX512 void run_some(const float* a, const float* b, std::int64_t count, float* y) {
  const __mmask16 mask = first_lanes(count);
  const __m512 first = _mm512_maskz_loadu_ps(mask, a);
  _mm512_mask_storeu_ps(y, mask, Op::of(first, Op::inputs == 2 ? _mm512_maskz_loadu_ps(mask, b) : first));
}

template <class Op>
GPUBENCH_AVX512 void run(const float* a, const float* b, float /*none*/, std::int64_t count, float* y) {
  const std::int64_t whole = count / lanes * lanes;
  for (std::int64_t i = 0; i < whole; i += lanes) {
    const __m512 first = _mm512_loadu_ps(a + i);
    _mm512_storeu_ps(y + i, Op::of(first, Op::inputs == 2 ? _mm512_loadu_ps(b + i) : first));
  }
  run_some<Op>(a + whole, Op::inputs == 2 ? b + whole : b, count - whole, y + whole);
}

[[gnu::always_inline]] inline void prefetch_ahead(const float* from) {
  __builtin_prefetch(reinterpret_cast<const std::byte*>(from) + prefetch_bytes, 0, 2);
}

template <class Op>
GPUBENCH_AVX512 void stream(const float* a, const float* b, float /*none*/, std::int64_t count, float* y) {
  constexpr bool two = Op::inputs == 2;
  const std::int64_t head = std::min(count, floats_to_line(y));
  run_some<Op>(a, b, head, y);
  const std::int64_t end = head + (count - head) / lanes * lanes;
#pragma GCC unroll 2
  for (std::int64_t i = head; i < end; i += lanes) {
    prefetch_ahead(a + i);
    if constexpr (two) prefetch_ahead(b + i);
    const __m512 first = _mm512_loadu_ps(a + i);
    _mm512_stream_ps(y + i, Op::of(first, two ? _mm512_loadu_ps(b + i) : first));
  }
  run_some<Op>(a + end, two ? b + end : b, count - end, y + end);
}

template <class Op>
constexpr PointwiseKernel kernel_of{run<Op>, stream<Op>};

}  // namespace

const PointwiseKernel gelu_tanh = kernel_of<GeluTanh>, gelu_tanh_backward = kernel_of<GeluTanhBackward>,
                      silu = kernel_of<Silu>, silu_backward = kernel_of<SiluBackward>, swiglu = kernel_of<Swiglu>;

#else

const PointwiseKernel gelu_tanh{}, gelu_tanh_backward{}, silu{}, silu_backward{}, swiglu{};

#endif

}  // namespace gpubench::cpu::avx512
