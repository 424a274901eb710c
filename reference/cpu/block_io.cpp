#include "reference/cpu/block_io.h"

#include "reference/cpu/host.h"
#include "reference/cpu/stream_store.h"
#include "reference/cpu/vector_clones.h"

namespace gpubench::cpu {

GPUBENCH_VECTOR_CLONES
void widen_run(const bf16* from, std::int64_t count, float* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = widen(from[i]);
}

GPUBENCH_VECTOR_CLONES
void narrow_run(const float* from, std::int64_t count, bf16* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = narrow<bf16>(from[i]);
}

bool worth_streaming(std::int64_t bytes) { return bytes > cold_cache_bytes() / 2; }

const float* Source::read(std::int64_t first, std::int64_t count, BlockBuffer& buffer) const {
  if (!is_bf16_) return reinterpret_cast<const float*>(data_) + first;
  widen_run(reinterpret_cast<const bf16*>(data_) + first, count, buffer.values.data());
  return buffer.values.data();
}

float Source::at(std::int64_t index) const {
  if (is_bf16_) return widen(reinterpret_cast<const bf16*>(data_)[index]);
  return reinterpret_cast<const float*>(data_)[index];
}

void Source::prefetch(std::int64_t first, std::int64_t count) const {
  const auto size = static_cast<std::int64_t>(is_bf16_ ? sizeof(bf16) : sizeof(float));
  const std::byte* end = data_ + (first + count) * size;
  for (const std::byte* line = data_ + first * size; line < end; line += 64) __builtin_prefetch(line, 0, 3);
}

float* Sink::place(std::int64_t first, BlockBuffer& buffer) const {
  return staged() ? buffer.values.data() : reinterpret_cast<float*>(data_) + first;
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
  alignas(64) std::array<bf16, block_elements> narrowed;
  narrow_run(block, count, narrowed.data());
  stream_store(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(narrowed.data()),
               elements * sizeof(bf16));
}

}  // namespace gpubench::cpu
