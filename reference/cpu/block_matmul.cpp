#include "reference/cpu/block_matmul.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "reference/cpu/kernel.h"
#include "reference/cpu/parallel.h"

// About passing vectors between functions of different levels; every function here that takes one is always inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace gpubench::cpu {
namespace {

// Sixteen lanes as one value, which the compiler maps to the registers of each level of clones. The unaligned types
// read memory.
using FloatLanes = float __attribute__((vector_size(64)));
using Lanes = std::uint32_t __attribute__((vector_size(64)));
using HalfLanes = std::uint16_t __attribute__((vector_size(32)));
// The alignment stands on the type, where g++ reads it, and on the name, where clang does.
using FloatLanesInMemory [[gnu::aligned(4)]] = float __attribute__((vector_size(64), aligned(4), may_alias));
using LanesInMemory [[gnu::aligned(2)]] = std::uint32_t __attribute__((vector_size(64), aligned(2), may_alias));
using HalfLanesInMemory [[gnu::aligned(2)]] = std::uint16_t __attribute__((vector_size(32), aligned(2), may_alias));
static_assert(alignof(FloatLanesInMemory) == 4 && alignof(LanesInMemory) == 2 && alignof(HalfLanesInMemory) == 2);
constexpr int lane_count = 16;
constexpr int tile_rows = 8;  // 8 x 2 sums, 2 of b and a broadcast fit in 32 registers

[[gnu::always_inline]] inline FloatLanes as_floats(const Lanes& bits) { return reinterpret_cast<FloatLanes>(bits); }

// One step of a transpose: swaps the off-diagonal quarters of every 2h x 2h square in rows i and i + h.
template <int h, int... lane>
[[gnu::always_inline]] inline void exchange(Lanes& upper, Lanes& lower, std::integer_sequence<int, lane...>) {
  const Lanes a = upper;
  const Lanes b = lower;
  upper = __builtin_shufflevector(a, b, ((lane & h) == 0 ? lane : lane_count + lane - h)...);
  lower = __builtin_shufflevector(a, b, ((lane & h) == 0 ? lane + h : lane_count + lane)...);
}

template <int h>
[[gnu::always_inline]] inline void exchange_all(Lanes (&rows)[lane_count]) {
#pragma GCC unroll 16
  for (int row = 0; row < lane_count; ++row) {
    if ((row & h) == 0) exchange<h>(rows[row], rows[row + h], std::make_integer_sequence<int, lane_count>());
  }
}

// Transposes 16 x 16 words and stores them `stride` words apart.
[[gnu::always_inline]] inline void store_transposed(Lanes (&rows)[lane_count], std::uint32_t* to, std::int64_t stride) {
  exchange_all<8>(rows);
  exchange_all<4>(rows);
  exchange_all<2>(rows);
  exchange_all<1>(rows);
#pragma GCC unroll 16
  for (int row = 0; row < lane_count; ++row) *reinterpret_cast<LanesInMemory*>(to + row * stride) = rows[row];
}

[[gnu::always_inline]] inline Lanes load(const std::uint32_t* from) {
  return *reinterpret_cast<const LanesInMemory*>(from);
}

// Two rows of bf16 as one row of words: what is next to each other along k.
[[gnu::always_inline]] inline Lanes load_pairs(const bf16* even, const bf16* odd) {
  const Lanes low = __builtin_convertvector(*reinterpret_cast<const HalfLanesInMemory*>(even), Lanes);
  const Lanes high = __builtin_convertvector(*reinterpret_cast<const HalfLanesInMemory*>(odd), Lanes);
  return low | (high << 16);
}

GPUBENCH_VECTOR_CLONES void transpose_words(Rows<const std::uint32_t> from, std::int64_t rows, std::int64_t columns,
                                            Rows<std::uint32_t> to) {
  for (std::int64_t row = 0; row < rows; row += lane_count) {
    for (std::int64_t column = 0; column < columns; column += lane_count) {
      Lanes square[lane_count];
#pragma GCC unroll 16
      for (int i = 0; i < lane_count; ++i) square[i] = load(from[row + i] + column);
      store_transposed(square, to[column] + row, to.stride);
    }
  }
}

GPUBENCH_VECTOR_CLONES void transpose_pairs(Rows<const bf16> from, std::int64_t rows, std::int64_t columns,
                                            Rows<std::uint32_t> to) {
  for (std::int64_t row = 0; row < rows; row += 2 * lane_count) {
    for (std::int64_t column = 0; column < columns; column += lane_count) {
      Lanes square[lane_count];
#pragma GCC unroll 16
      for (int i = 0; i < lane_count; ++i)
        square[i] = load_pairs(from[row + 2 * i] + column, from[row + 2 * i + 1] + column);
      store_transposed(square, to[column] + row / 2, to.stride);
    }
  }
}

GPUBENCH_VECTOR_CLONES void pack_pairs(Rows<const bf16> from, std::int64_t k, std::int64_t n, std::uint32_t* packed) {
  for (std::int64_t column = 0; column < n; column += block_grain) {
    for (std::int64_t row = 0; row < k; row += 2) {
      const bf16* even = from[row] + column;
      const bf16* odd = from[row + 1] + column;
      *reinterpret_cast<LanesInMemory*>(packed) = load_pairs(even, odd);
      *reinterpret_cast<LanesInMemory*>(packed + lane_count) = load_pairs(even + lane_count, odd + lane_count);
      packed += block_grain;
    }
  }
}

// Panels of 32 columns, each the transpose of 32 stored rows of `words` words.
void pack_transposed_words(Rows<const std::uint32_t> from, std::int64_t words, std::int64_t n, std::uint32_t* packed) {
  for (std::int64_t column = 0; column < n; column += block_grain) {
    transpose_words(from.from(column), block_grain, words, {packed + column * words, block_grain});
  }
}

// Rows of bf16 as rows of pairs. The stride is even wherever this is used (padded blocks).
Rows<const std::uint32_t> words_of(Rows<const bf16> rows) {
  return {reinterpret_cast<const std::uint32_t*>(rows.data), rows.stride / 2};
}
Rows<const std::uint32_t> words_of(Rows<const float> rows) {
  return {reinterpret_cast<const std::uint32_t*>(rows.data), rows.stride};
}

// narrow<bf16>() of 16 values.
[[gnu::always_inline]] inline HalfLanes narrow_lanes(const Lanes& bits) {
  const Lanes rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const Lanes quiet_nan = (bits >> 16) | 0x40U;
  return __builtin_convertvector((bits & 0x7fffffffU) > 0x7f800000U ? quiet_nan : rounded, HalfLanes);
}

GPUBENCH_VECTOR_CLONES void round_lanes(Rows<const float> from, std::int64_t rows, std::int64_t columns,
                                        Rows<bf16> to) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto* source = reinterpret_cast<const std::uint32_t*>(from[row]);
    bf16* target = to[row];
    for (std::int64_t i = 0; i < columns; i += lane_count) {
      *reinterpret_cast<HalfLanesInMemory*>(target + i) = narrow_lanes(load(source + i));
    }
  }
}

// The sums of 8 rows and 32 columns, which stay in registers.
struct Sums {
  FloatLanes lane[tile_rows][2];
};

[[gnu::always_inline]] inline void add_products(Sums& sums, int row, float a, const FloatLanes& left,
                                                const FloatLanes& right) {
  sums.lane[row][0] += a * left;
  sums.lane[row][1] += a * right;
}

[[gnu::always_inline]] inline void load_sums(Sums& sums, Rows<float> c, bool accumulate) {
#pragma GCC unroll 8
  for (int row = 0; row < tile_rows; ++row) {
    const auto* from = reinterpret_cast<const FloatLanesInMemory*>(c[row]);
    sums.lane[row][0] = accumulate ? from[0] : FloatLanes{};
    sums.lane[row][1] = accumulate ? from[1] : FloatLanes{};
  }
}

[[gnu::always_inline]] inline void store_sums(const Sums& sums, Rows<float> c) {
#pragma GCC unroll 8
  for (int row = 0; row < tile_rows; ++row) {
    auto* to = reinterpret_cast<FloatLanesInMemory*>(c[row]);
    to[0] = sums.lane[row][0];
    to[1] = sums.lane[row][1];
  }
}

GPUBENCH_VECTOR_CLONES void multiply_f32(const BlockExtents& extents, Rows<const float> a, const float* b,
                                         Rows<float> c, bool accumulate) {
  for (std::int64_t n = 0; n < extents.n; n += block_grain) {
    for (std::int64_t m = 0; m < extents.m; m += tile_rows) {
      Sums sums;
      load_sums(sums, c.from(m, n), accumulate);
      const float* panel = b + n * extents.packed_k;
      const float* column = a[m];
      for (std::int64_t k = 0; k < extents.k; ++k, panel += block_grain, ++column) {
        const FloatLanes left = *reinterpret_cast<const FloatLanesInMemory*>(panel);
        const FloatLanes right = *reinterpret_cast<const FloatLanesInMemory*>(panel + lane_count);
#pragma GCC unroll 8
        for (int row = 0; row < tile_rows; ++row) add_products(sums, row, column[row * a.stride], left, right);
      }
      store_sums(sums, c.from(m, n));
    }
  }
}

GPUBENCH_VECTOR_CLONES void multiply_bf16(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c,
                                          bool accumulate) {
  for (std::int64_t n = 0; n < extents.n; n += block_grain) {
    for (std::int64_t m = 0; m < extents.m; m += tile_rows) {
      Sums sums;
      load_sums(sums, c.from(m, n), accumulate);
      const auto* panel = reinterpret_cast<const std::uint32_t*>(b + n * extents.packed_k);
      const bf16* column = a[m];
      for (std::int64_t k = 0; k < extents.k; k += 2, panel += block_grain, column += 2) {
        const Lanes left = load(panel);
        const Lanes right = load(panel + lane_count);
#pragma GCC unroll 8
        for (int row = 0; row < tile_rows; ++row) {
          const bf16* pair = column + row * a.stride;
          add_products(sums, row, widen(pair[0]), as_floats(left << 16), as_floats(right << 16));
          add_products(sums, row, widen(pair[1]), as_floats(left & 0xffff0000U), as_floats(right & 0xffff0000U));
        }
      }
      store_sums(sums, c.from(m, n));
    }
  }
}

}  // namespace

template <class T>
void copy_padded(Rows<const T> from, std::int64_t rows, std::int64_t columns, Rows<T> to) {
  const std::int64_t width = padded(columns);
  for (std::int64_t row = 0; row < padded(rows); ++row) {
    T* target = to[row];
    const std::int64_t held = row < rows ? columns : 0;
    if (held > 0) std::memcpy(target, from[row], static_cast<std::size_t>(held) * sizeof(T));
    std::fill(target + held, target + width, T{});
  }
}
template void copy_padded(Rows<const float>, std::int64_t, std::int64_t, Rows<float>);
template void copy_padded(Rows<const bf16>, std::int64_t, std::int64_t, Rows<bf16>);

void pack(Rows<const float> from, std::int64_t k, std::int64_t n, float* packed) {
  for (std::int64_t column = 0; column < n; column += block_grain) {
    for (std::int64_t row = 0; row < k; ++row) {
      std::memcpy(packed, from[row] + column, block_grain * sizeof(float));
      packed += block_grain;
    }
  }
}
void pack(Rows<const bf16> from, std::int64_t k, std::int64_t n, bf16* packed) {
  pack_pairs(from, k, n, reinterpret_cast<std::uint32_t*>(packed));
}

void pack_transposed(Rows<const float> from, std::int64_t k, std::int64_t n, float* packed) {
  pack_transposed_words(words_of(from), k, n, reinterpret_cast<std::uint32_t*>(packed));
}
void pack_transposed(Rows<const bf16> from, std::int64_t k, std::int64_t n, bf16* packed) {
  pack_transposed_words(words_of(from), k / 2, n, reinterpret_cast<std::uint32_t*>(packed));
}

void transpose(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<float> to) {
  transpose_words(words_of(from), rows, columns, {reinterpret_cast<std::uint32_t*>(to.data), to.stride});
}
void transpose(Rows<const bf16> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to) {
  transpose_pairs(from, rows, columns, {reinterpret_cast<std::uint32_t*>(to.data), to.stride / 2});
}

void round_block(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to) {
  round_lanes(from, rows, columns, to);
}

void multiply(const BlockExtents& extents, Rows<const float> a, const float* b, Rows<float> c, bool accumulate) {
  multiply_f32(extents, a, b, c, accumulate);
}
void multiply(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate) {
  if (amx::has_amx()) {
    amx::multiply(extents, a, b, c, accumulate);
  } else {
    multiply_bf16(extents, a, b, c, accumulate);
  }
}
void multiply_widened(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate) {
  multiply_bf16(extents, a, b, c, accumulate);
}

BlockMatmulScope::BlockMatmulScope() {
  if (amx::has_amx()) amx::load_tile_shapes();
}
BlockMatmulScope::~BlockMatmulScope() {
  if (amx::has_amx()) amx::release_tiles();
}

std::string block_matmul_implementation(bool is_bf16) {
  return is_bf16 && amx::has_amx() ? "gpubench:amx_bf16" : own_implementation();
}

}  // namespace gpubench::cpu
