#include "reference/cpu/block_io.h"

#include <algorithm>
#include <cstring>

#include "reference/cpu/host.h"
#include "reference/cpu/runs.h"
#include "reference/cpu/usable_isa.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gpubench::cpu {

namespace {

constexpr std::size_t line_bytes = 64;

/// Bytes from `to` to the next whole line.
std::size_t bytes_to_line(const void* to) {
  return (line_bytes - reinterpret_cast<std::uintptr_t>(to) % line_bytes) % line_bytes;
}

constexpr std::int64_t bf16_of_line = 32;

// Prefetch distance: the processor does not prefetch during work on a cached block. Prefetching beyond the tensor is
// harmless.
constexpr std::int64_t elements_ahead = 4 * block_elements;
constexpr std::int64_t longest_prefetched = 8 * block_elements;

}  // namespace

void narrow_run(const float* from, std::int64_t count, bf16* to) {
  const std::int64_t whole = avx512_bf16::available() ? count / bf16_of_line * bf16_of_line : 0;
  if (whole > 0) avx512_bf16::narrow_lines(from, whole / bf16_of_line, to, false);
  if (whole < count) runs().narrow(from + whole, count - whole, to + whole);
}

// Reads the cache size from files, hence only once.
bool should_stream(std::int64_t bytes) {
  static const std::int64_t most = cold_cache_bytes() / 2;
  return bytes > most;
}

const float* Source::read(std::int64_t first, std::int64_t count, BlockBuffer& buffer) const {
  if (count <= longest_prefetched) prefetch(first + elements_ahead, count);
  return gather(first, count, buffer);
}

const float* Source::gather(std::int64_t first, std::int64_t count, BlockBuffer& buffer) const {
  if (!is_bf16_) return reinterpret_cast<const float*>(data_) + first;
  runs().widen(reinterpret_cast<const bf16*>(data_) + first, count, buffer.values.data());
  return buffer.values.data();
}

void Source::prefetch(std::int64_t first, std::int64_t count) const {
  const auto size = static_cast<std::int64_t>(is_bf16_ ? sizeof(bf16) : sizeof(float));
  const std::byte* end = data_ + (first + count) * size;
  for (const std::byte* line = data_ + first * size; line < end; line += 64) __builtin_prefetch(line, 0, 2);
}

void move_bytes(std::byte* to, const std::byte* from, std::int64_t bytes, bool streaming) {
  if (streaming) {
    stream_store(to, from, static_cast<std::size_t>(bytes));
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }
}

void Sink::commit(std::int64_t first, std::int64_t count, const float* block) const {
  const auto elements = static_cast<std::size_t>(count);
  if (!is_bf16_) {
    if (!streaming_) return;
    stream_store(data_ + static_cast<std::size_t>(first) * sizeof(float), reinterpret_cast<const std::byte*>(block),
                 elements * sizeof(float));
    return;
  }
  auto* to = reinterpret_cast<bf16*>(data_) + first;
  if (!streaming_) {
    narrow_run(block, count, to);
    return;
  }
  if (avx512_bf16::available()) {
    const auto head = std::min(count, static_cast<std::int64_t>(bytes_to_line(to) / sizeof(bf16)));
    const std::int64_t lines = (count - head) / bf16_of_line, end = head + lines * bf16_of_line;
    runs().narrow(block, head, to);
    avx512_bf16::narrow_lines(block + head, lines, to + head, true);
    runs().narrow(block + end, count - end, to + end);
    return;
  }
  alignas(64) std::array<bf16, block_elements> narrowed;
  narrow_run(block, count, narrowed.data());
  stream_store(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(narrowed.data()),
               elements * sizeof(bf16));
}

void stream_store(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = std::min(bytes, bytes_to_line(to));
  const std::size_t body = (bytes - head) / line_bytes * line_bytes;
  std::memcpy(to, from, head);
  runs().stream(reinterpret_cast<const float*>(from + head), static_cast<std::int64_t>(body / sizeof(float)),
                reinterpret_cast<float*>(to + head));
  std::memcpy(to + head + body, from + head + body, bytes - head - body);
}

void stream_fence() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

namespace avx512_bf16 {

bool available() {
  static const bool answer = announced() && own_kernels_usable(own_isa);
  return answer;
}

#if defined(__x86_64__) && defined(__GNUC__)

bool announced() {
  return __builtin_cpu_supports("avx512bf16") > 0 && __builtin_cpu_supports("avx512vl") > 0 &&
         __builtin_cpu_supports("avx512dq") > 0;
}

// The instruction flushes subnormals to 0, so vectors with subnormals take the portable way.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16"))) void narrow_lines(const float* from,
                                                                                           std::int64_t lines, bf16* to,
                                                                                           bool streaming) {
  for (std::int64_t i = 0; i < lines; ++i, from += bf16_of_line, to += bf16_of_line) {
    constexpr int subnormal = 0x20;
    const __m512 low = _mm512_loadu_ps(from), high = _mm512_loadu_ps(from + bf16_of_line / 2);
    auto line = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
    if ((_mm512_fpclass_ps_mask(low, subnormal) | _mm512_fpclass_ps_mask(high, subnormal)) != 0) {
      alignas(64) std::array<bf16, bf16_of_line> narrowed;
      std::transform(from, from + bf16_of_line, narrowed.begin(), narrow<bf16>);
      line = _mm512_load_si512(narrowed.data());
    }
    if (streaming) {
      _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line);
    } else {
      _mm512_storeu_si512(to, line);
    }
  }
}

#else

bool announced() { return false; }
void narrow_lines(const float*, std::int64_t, bf16*, bool) {}

#endif

}  // namespace avx512_bf16

}  // namespace gpubench::cpu
