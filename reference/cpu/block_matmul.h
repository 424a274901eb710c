// Small matrix products on one thread, fused with other work (attention).
//
// oneDNN would pack an operand in every call; here the caller packs once and multiplies often. Extents are zero-padded
// to multiples of 32, so there is one kernel per type: bf16 by AMX tiles or else widened to f32, f32 by vector
// registers. Sums are f32, in an order that depends on the extents only.
//
// A "packed" operand [k, n] holds n / 32 panels: f32 [k][32]; bf16 [k / 2][32][2], pairs along k as AMX needs them
// (Intel Architecture Instruction Set Extensions, TDPBF16PS).
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
  /// The submatrix from an element on.
  [[nodiscard]] Rows from(std::int64_t row, std::int64_t column = 0) const {
    return {data + row * stride + column, stride};
  }
  operator Rows<const T>() const requires(!std::is_const_v<T>) { return {data, stride}; }
};

struct BlockExtents {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t packed_k = 0;  ///< k with which b was packed, at least k; the first k are used
};

/// Copies `rows` x `columns` elements and zeroes the rest of the padded block.
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

/// Rounds sums to bf16.
void round_block(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to);

/// c = a b, or c += a b: a [m, k], b [k, n] packed, c [m, n]. Requires a BlockMatmulScope on the same thread.
void multiply(const BlockExtents& extents, Rows<const float> a, const float* b, Rows<float> c, bool accumulate);
void multiply(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate);

/// multiply() without AMX.
void multiply_widened(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate);

/// Configures the thread's AMX tile registers, if any, and releases them.
class BlockMatmulScope {
 public:
  BlockMatmulScope();
  ~BlockMatmulScope();
  BlockMatmulScope(const BlockMatmulScope&) = delete;
  BlockMatmulScope& operator=(const BlockMatmulScope&) = delete;
};

/// Implementation name of a type's products: "gpubench:amx_bf16", "gpubench:avx512".
[[nodiscard]] std::string block_matmul_implementation(bool is_bf16);

}  // namespace gpubench::cpu

// The AMX kernel of multiply(), for block_matmul.cpp and the kernel's trial (own_kernel_proof.h) only. Requires
// has_amx().

namespace gpubench::cpu::amx {

/// Whether the CPU has AMX with bf16, Linux permits its use (requested once), and the trial passed (usable_isa.h).
[[nodiscard]] bool has_amx();

/// Without the trial.
[[nodiscard]] bool announced();

/// Name in IsaLimit::barred.
inline constexpr const char* own_isa = "amx_bf16";

void load_tile_shapes();
void release_tiles();
void multiply(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate);

}  // namespace gpubench::cpu::amx
