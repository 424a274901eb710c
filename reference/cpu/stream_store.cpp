// Non-temporal stores by instruction set, chosen once at run time. See stream_store.h.
#include "reference/cpu/stream_store.h"

#include <algorithm>
#include <cstring>

#include "reference/cpu/vector_avx512.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gpubench::cpu {
namespace {

constexpr std::size_t line_bytes = 64;

/// Bytes from `to` up to the next whole line.
std::size_t bytes_to_line(const void* to) {
  return (line_bytes - reinterpret_cast<std::uintptr_t>(to) % line_bytes) % line_bytes;
}

void triad_elements(const float* b, const float* c, float factor, std::int64_t count, float* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = b[i] + factor * c[i];
}

#if defined(__x86_64__)

void copy_lines_sse(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < 4 * lines; ++i, to += 16, from += 16) {
    _mm_stream_ps(reinterpret_cast<float*>(to), _mm_loadu_ps(reinterpret_cast<const float*>(from)));
  }
}

void triad_sse(const float* b, const float* c, float factor, std::int64_t count, float* y) {
  const __m128 factors = _mm_set1_ps(factor);
  for (std::int64_t i = 0; i < count; i += 4) {
    _mm_stream_ps(y + i, _mm_add_ps(_mm_mul_ps(factors, _mm_loadu_ps(c + i)), _mm_loadu_ps(b + i)));
  }
}

#endif

}  // namespace

#if defined(GPUBENCH_HAS_AVX512_CODE)

GPUBENCH_AVX512 void avx512::copy_lines(std::byte* to, const std::byte* from, std::size_t lines) {
  for (std::size_t i = 0; i < lines; ++i, to += line_bytes, from += line_bytes) {
    _mm512_stream_ps(reinterpret_cast<float*>(to), _mm512_loadu_ps(from));
  }
}

GPUBENCH_AVX512 void avx512::triad_lines(const float* b, const float* c, float factor, std::int64_t count, float* y) {
  const __m512 factors = _mm512_set1_ps(factor);
  for (std::int64_t i = 0; i < count; i += 16) {
    _mm512_stream_ps(y + i, _mm512_fmadd_ps(factors, _mm512_loadu_ps(c + i), _mm512_loadu_ps(b + i)));
  }
}

#else

void avx512::copy_lines(std::byte*, const std::byte*, std::size_t) {}
void avx512::triad_lines(const float*, const float*, float, std::int64_t, float*) {}

#endif

#if defined(__x86_64__)

void stream_store(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = std::min(bytes, bytes_to_line(to));
  const std::size_t lines = (bytes - head) / line_bytes;
  const std::size_t body = lines * line_bytes;
  std::memcpy(to, from, head);
  (avx512::available() ? avx512::copy_lines : copy_lines_sse)(to + head, from + head, lines);
  std::memcpy(to + head + body, from + head + body, bytes - head - body);
}

void stream_triad(const float* b, const float* c, float factor, std::int64_t count, float* y) {
  const auto head = std::min(count, static_cast<std::int64_t>(bytes_to_line(y) / sizeof(float)));
  const std::int64_t body = (count - head) / 16 * 16;
  triad_elements(b, c, factor, head, y);
  (avx512::available() ? avx512::triad_lines : triad_sse)(b + head, c + head, factor, body, y + head);
  triad_elements(b + head + body, c + head + body, factor, count - head - body, y + head + body);
}

void stream_fence() { _mm_sfence(); }

#else

void stream_store(std::byte* to, const std::byte* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void stream_triad(const float* b, const float* c, float factor, std::int64_t count, float* y) {
  triad_elements(b, c, factor, count, y);
}

void stream_fence() {}

#endif

}  // namespace gpubench::cpu
