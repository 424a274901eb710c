// Small matrix products on one thread, for ops that fuse them with other work (attention).
//
// A library call per block costs more than the block: oneDNN packs an operand anew in every call and pays its own
// dispatch. Here the caller packs once and multiplies often. Everything is padded with zeros to multiples of 32, so
// that there is one kernel per type and no edge case: bf16 by AMX tiles where the processor has them, else by widening
// to f32; f32 by vector registers. Sums are f32 in an order that depends on the extents only.
//
// A "packed" operand [k, n] holds n / 32 panels one after the other: f32 [k][32]; bf16 [k / 2][32][2], the pairs along
// k that AMX wants (Intel Architecture Instruction Set Extensions, TDPBF16PS).
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "reference/cpu/block_io.h"

namespace gpubench::cpu {

/// All extents below are multiples of this.
inline constexpr std::int64_t block_grain = 32;
[[nodiscard]] constexpr std::int64_t padded(std::int64_t extent) {
  return (extent + block_grain - 1) / block_grain * block_grain;
}

/// A matrix in memory: rows `stride` elements apart, each contiguous.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;
  [[nodiscard]] T* operator[](std::int64_t row) const { return data + row * stride; }
  /// The same matrix, starting at an element of it.
  [[nodiscard]] Rows from(std::int64_t row, std::int64_t column = 0) const {
    return {data + row * stride + column, stride};
  }
  /// To be read only.
  operator Rows<const T>() const requires(!std::is_const_v<T>) { return {data, stride}; }
};

struct BlockExtents {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t packed_k = 0;  ///< what b was packed with: at least k; only its first k are used
};

/// Copies `rows` x `columns` elements and fills the rest of the padded block with zeros.
template <class T>
void copy_padded(Rows<const T> from, std::int64_t rows, std::int64_t columns, Rows<T> to);

/// Packs an operand stored as [k][n].
void pack(Rows<const float> from, std::int64_t k, std::int64_t n, float* packed);
void pack(Rows<const bf16> from, std::int64_t k, std::int64_t n, bf16* packed);

/// Packs an operand stored as [n][k].
void pack_transposed(Rows<const float> from, std::int64_t k, std::int64_t n, float* packed);
void pack_transposed(Rows<const bf16> from, std::int64_t k, std::int64_t n, bf16* packed);

/// to[column][row] = from[row][column]
void transpose(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<float> to);
void transpose(Rows<const bf16> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to);

/// Makes an operand of sums: rounds to bf16.
void round_block(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to);

/// c = a b, or c += a b: a [m, k], b [k, n] packed, c [m, n].
/// Call it inside a BlockMatmulScope of the same thread.
void multiply(const BlockExtents& extents, Rows<const float> a, const float* b, Rows<float> c, bool accumulate);
void multiply(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate);

/// multiply() without AMX, for processors that lack it.
void multiply_widened(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate);

/// Sets up the calling thread's tile registers, where there are any, and releases them at the end.
class BlockMatmulScope {
 public:
  BlockMatmulScope();
  ~BlockMatmulScope();
  BlockMatmulScope(const BlockMatmulScope&) = delete;
  BlockMatmulScope& operator=(const BlockMatmulScope&) = delete;
};

/// What computes the products of a type, for records: "gpubench:amx_bf16", "gpubench:avx512".
[[nodiscard]] std::string block_matmul_implementation(bool is_bf16);

}  // namespace gpubench::cpu

// The AMX kernel of multiply(). For block_matmul.cpp and the kernel's trial (own_kernel_proof.h) only: call the rest
// only where has_amx().

namespace gpubench::cpu::amx {

/// True when the processor has AMX with bf16, the kernel lets this process use it (which is asked for once), and the
/// products were right in a trial (usable_isa.h).
[[nodiscard]] bool has_amx();

/// The first two alone: for the trial.
[[nodiscard]] bool announced();

/// The name that it is barred by.
inline constexpr const char* own_isa = "amx_bf16";

void load_tile_shapes();
void release_tiles();
void multiply(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate);

}  // namespace gpubench::cpu::amx
