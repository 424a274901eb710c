// Blocks of f32 on their way between memory and arithmetic.
//
// Every memory-bound kernel computes on short runs of f32. A Source hands out such runs (bf16 is widened into a buffer,
// f32 is read in place); a Sink takes them (narrowed to bf16, streamed around the caches, or computed in place). A
// block stays in the first-level cache, and is short enough that the loads of the next one overlap the stores of this.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"

namespace gpubench::cpu {

// bf16 as kernels read and write it: the upper half of an f32, rounded to nearest, ties to even, NaN kept.

/// One stored bf16 number. A type of its own, so that kernels are templates over {float, bf16}.
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
/// Without branches, so that loops over it become vector code.
template <>
inline bf16 narrow<bf16>(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  const std::uint32_t quiet_nan = (bits >> 16U) | 0x40U;
  return {static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded)};
}

/// Longest block that may pass through a BlockBuffer. At 256, staging costs a triad 3-10%; at 1024, 20%.
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
  /// Prefetches what lies 4 KiB ahead.
  [[nodiscard]] const float* read(std::int64_t first, std::int64_t count, BlockBuffer& buffer) const;
  /// The same without a prefetch: for rows in no order, which are prefetched by name.
  [[nodiscard]] const float* gather(std::int64_t first, std::int64_t count, BlockBuffer& buffer) const;
  [[nodiscard]] float at(std::int64_t i) const {
    return is_bf16_ ? widen(reinterpret_cast<const bf16*>(data_)[i]) : reinterpret_cast<const float*>(data_)[i];
  }
  /// Prefetches `count` elements from `first` into the second-level cache: more loads can wait for it than for the
  /// first.
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

  /// Where to compute the block that starts at `first`: its place in the tensor, or `buffer`.
  [[nodiscard]] float* place(std::int64_t first, BlockBuffer& buffer) const {
    return staged() ? buffer.values.data() : where(first);
  }
  /// Stores the `count` elements that were computed at `block`, where place() said.
  void commit(std::int64_t first, std::int64_t count, const float* block) const;
  /// True when blocks pass through a buffer, so that they may have at most block_elements.
  [[nodiscard]] bool staged() const { return is_bf16_ || streaming_; }
  /// True for f32 that is stored around the caches; a kernel that can do that itself writes to where().
  [[nodiscard]] bool streams_f32() const { return streaming_ && !is_bf16_; }
  [[nodiscard]] float* where(std::int64_t first) const { return reinterpret_cast<float*>(data_) + first; }

 private:
  std::byte* data_ = nullptr;
  bool is_bf16_ = false;
  bool streaming_ = false;
};

/// to[i] = from[i] rounded to bf16.
void narrow_run(const float* from, std::int64_t count, bf16* to);

// Stores that bypass the caches, for outputs that would not stay in them anyway.
//
// An ordinary store reads its cache line first (write-allocate), a third more traffic for a triad. Where the output is
// larger than what a cache can keep, that read is pure loss; smaller outputs are stored the ordinary way and stay warm.

/// Copies `bytes` to `to` around the caches. Any alignment; whole 64-byte lines of `to` are fastest.
void stream_store(std::byte* to, const std::byte* from, std::size_t bytes);

/// The same, or an ordinary copy.
void move_bytes(std::byte* to, const std::byte* from, std::int64_t bytes, bool streaming);

/// narrow_run() by the instructions for it.
namespace avx512_bf16 {

/// The name that it is barred by.
inline constexpr const char* own_isa = "avx512_bf16";

/// True when the processor announces the instructions.
[[nodiscard]] bool announced();
/// The same, when it was right in a trial (usable_isa.h).
[[nodiscard]] bool available();

/// Of `lines` times 32 numbers, where available(); `to` begins a line if `streaming`.
void narrow_lines(const float* from, std::int64_t lines, bf16* to, bool streaming);

}  // namespace avx512_bf16

/// An output that is stored by bytes, and whether around the caches.
struct Target {
  std::byte* data = nullptr;
  bool streaming = false;
  Target() = default;
  Target(const Tensor& tensor, bool around) : data(tensor.data), streaming(around) {}
  void store(std::int64_t at, const void* from, std::int64_t bytes) const {
    move_bytes(data + at, static_cast<const std::byte*>(from), bytes, streaming);
  }
};

/// Orders the streamed stores of this thread before whatever it does next. Call once before a thread is done.
void stream_fence();

/// Calls run_row(row) for each of `rows` rows of `columns` elements, on as many threads as they are worth, and
/// stream_fence() at the end of each.
template <class RunRow>
void parallel_rows(int threads, std::int64_t rows, std::int64_t columns, const RunRow& run_row) {
  parallel_chunks(threads, rows, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) run_row(row);
    stream_fence();
  });
}

/// Calls visit(first, count) for [0, total) in blocks of `step`, of which the last may be shorter.
template <class Visit>
void in_blocks(std::int64_t total, std::int64_t step, const Visit& visit) {
  for (std::int64_t first = 0; first < total; first += step) visit(first, std::min(step, total - first));
}

}  // namespace gpubench::cpu
