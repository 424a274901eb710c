// Blocks of f32 between memory and arithmetic.
//
// Memory-bound kernels compute on short runs of f32. A Source returns runs (bf16 widened into a buffer, f32 in place);
// a Sink stores them (narrowed to bf16, streamed past the caches, or computed in place). Blocks stay in the L1 cache
// and are short enough that the next block's loads overlap with stores.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"

namespace gpubench::cpu {

// bf16 is the upper half of an f32, rounded to nearest even; NaN is kept.

/// A struct, so that kernels are templates over {float, bf16}.
struct bf16 {
  std::uint16_t bits;
};

inline float widen(float value) { return value; }
inline float widen(bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U); }

template <class T>
T narrow(float value);
template <>
inline float narrow<float>(float value) {
  return value;
}
/// Branch-free, so that loops vectorize.
template <>
inline bf16 narrow<bf16>(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t quiet_nan = (bits >> 16U) | 0x40U;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded)};
}

/// Longest block in a BlockBuffer. At 256, staging costs a triad 3-10%; at 1024, 20%.
inline constexpr std::int64_t block_elements = 256;

struct BlockBuffer {
  alignas(64) std::array<float, block_elements> values;
};

/// Reads f32 or bf16 as f32.
class Source {
 public:
  Source() = default;
  explicit Source(const Tensor& tensor) : Source(tensor.data, tensor.spec.dtype) {}
  Source(const std::byte* data, DType dtype) : data_(data), is_bf16_(dtype == DType::bf16) {}

  /// `count` elements from `first`: in place (f32; any count), or in `buffer` (bf16; at most block_elements).
  /// Prefetches 4 KiB ahead.
  [[nodiscard]] const float* read(std::int64_t first, std::int64_t count, BlockBuffer& buffer) const;
  /// As read() without the prefetch: for rows in random order, which callers prefetch.
  [[nodiscard]] const float* gather(std::int64_t first, std::int64_t count, BlockBuffer& buffer) const;
  [[nodiscard]] float at(std::int64_t i) const {
    return is_bf16_ ? widen(reinterpret_cast<const bf16*>(data_)[i]) : reinterpret_cast<const float*>(data_)[i];
  }
  /// Prefetches `count` elements from `first` into the L2 cache, which supports more outstanding loads than the L1
  /// cache.
  void prefetch(std::int64_t first, std::int64_t count) const;
  [[nodiscard]] bool staged() const { return is_bf16_; }

 private:
  const std::byte* data_ = nullptr;
  bool is_bf16_ = false;
};

/// Writes f32 as f32 or bf16.
class Sink {
 public:
  Sink() = default;
  Sink(const Tensor& tensor, bool streaming) : Sink(tensor.data, tensor.spec.dtype, streaming) {}
  Sink(std::byte* data, DType dtype, bool streaming)
      : data_(data), is_bf16_(dtype == DType::bf16), streaming_(streaming) {}

  /// Where to compute the block at `first`: in the tensor or in `buffer`.
  [[nodiscard]] float* place(std::int64_t first, BlockBuffer& buffer) const {
    return staged() ? buffer.values.data() : where(first);
  }
  /// Stores the `count` elements at `block`, the address that place() returned.
  void commit(std::int64_t first, std::int64_t count, const float* block) const;
  /// Whether blocks go through a buffer, which limits them to block_elements.
  [[nodiscard]] bool staged() const { return is_bf16_ || streaming_; }
  /// Whether f32 is streamed; a kernel that streams itself may write to where().
  [[nodiscard]] bool streams_f32() const { return streaming_ && !is_bf16_; }
  [[nodiscard]] float* where(std::int64_t first) const { return reinterpret_cast<float*>(data_) + first; }

 private:
  std::byte* data_ = nullptr;
  bool is_bf16_ = false;
  bool streaming_ = false;
};

/// to[i] = from[i] rounded to bf16.
void narrow_run(const float* from, std::int64_t count, bf16* to);

// Streaming stores for outputs that would not stay in the caches.
//
// An ordinary store reads its cache line first (write-allocate): a third more traffic for a triad. Smaller outputs use
// ordinary stores and stay in the caches.

/// Streams `bytes` to `to`. Any alignment; whole 64-byte lines of `to` are fastest.
void stream_store(std::byte* to, const std::byte* from, std::size_t bytes);

/// As stream_store(), or an ordinary copy.
void move_bytes(std::byte* to, const std::byte* from, std::int64_t bytes, bool streaming);

/// narrow_run() by AVX-512 BF16 instructions.
namespace avx512_bf16 {

/// Name in IsaLimit::barred.
inline constexpr const char* own_isa = "avx512_bf16";

/// Whether the CPU reports the instructions.
[[nodiscard]] bool announced();
/// announced(), and the trial passed (usable_isa.h).
[[nodiscard]] bool available();

/// Narrows `lines` * 32 numbers; requires available(). With `streaming`, `to` must begin a line.
void narrow_lines(const float* from, std::int64_t lines, bf16* to, bool streaming);

}  // namespace avx512_bf16

/// An output stored by bytes.
struct Target {
  std::byte* data = nullptr;
  bool streaming = false;
  Target() = default;
  Target(const Tensor& tensor, bool around) : data(tensor.data), streaming(around) {}
  void store(std::int64_t at, const void* from, std::int64_t bytes) const {
    move_bytes(data + at, static_cast<const std::byte*>(from), bytes, streaming);
  }
};

/// Orders this thread's streamed stores before its later work. Call once before a thread ends its part.
void stream_fence();

/// Calls run_row(row) for each of `rows` rows of `columns` elements, on a suitable number of threads, and
/// stream_fence() on each.
template <class RunRow>
void parallel_rows(int threads, std::int64_t rows, std::int64_t columns, const RunRow& run_row) {
  parallel_chunks(threads, rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) run_row(row);
    stream_fence();
  });
}

/// Calls visit(first, count) for [0, total) in blocks of at most `step`.
template <class Visit>
void in_blocks(std::int64_t total, std::int64_t step, const Visit& visit) {
  for (std::int64_t first = 0; first < total; first += step) visit(first, std::min(step, total - first));
}

}  // namespace gpubench::cpu
