#include "reference/cpu/block_matmul.h"

#include <algorithm>
#include <cstring>

#include "reference/cpu/vector_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reference/cpu/block_matmul.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace gpubench::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Words = hn::CappedTag<std::uint32_t, 16>;
using Halves = hn::Rebind<std::uint16_t, Words>;
using Floats = hn::CappedTag<float, 16>;
using WordsOfBlock = hn::FixedTag<std::uint32_t, 4>;
constexpr std::int64_t lane_count = hn::MaxLanes(Words());

// Registers must hold sums of `tile_rows` rows and two vectors, two vectors of b and one of a: 32 registers, or 16.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64
constexpr int tile_rows = 8;
#else
constexpr int tile_rows = 6;
#endif

HWY_INLINE const std::uint16_t* bits_of(const bf16* from) { return reinterpret_cast<const std::uint16_t*>(from); }

// Four words per row, in consecutive 128-bit blocks: of row 0, row 4, row 8, ...
template <class D, class LoadFour>
HWY_INLINE hn::Vec<D> load_blocks(D words, const LoadFour& load_four, std::int64_t row) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return load_four(row);
  } else {
    const hn::Half<D> half;
    constexpr std::int64_t rows = hn::MaxLanes(half);
    return hn::Combine(words, load_blocks(half, load_four, row + rows), load_blocks(half, load_four, row));
  }
}

// to[column][row] = word `column` of row `row`; load_four(row, column) loads four.
template <class LoadFour>
HWY_INLINE void transpose_words(const LoadFour& load_four, std::int64_t rows, std::int64_t columns,
                                Rows<std::uint32_t> to) {
  const Words words;
  const hn::Repartition<std::uint64_t, Words> pairs;
  for (std::int64_t row = 0; row < rows; row += lane_count) {
    for (std::int64_t column = 0; column < columns; column += 4) {
      const auto blocks = [&](std::int64_t first) {
        return load_blocks(
            words, [&](std::int64_t at) HWY_ATTR { return load_four(at, column); }, row + first);
      };
      const auto a = blocks(0), b = blocks(1), c = blocks(2), d = blocks(3);
      const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(words, a, b));
      const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(words, a, b));
      const auto cd_low = hn::BitCast(pairs, hn::InterleaveLower(words, c, d));
      const auto cd_high = hn::BitCast(pairs, hn::InterleaveUpper(words, c, d));
      const auto store = [&](std::int64_t at, auto transposed)
                             HWY_ATTR { hn::StoreU(hn::BitCast(words, transposed), words, to[column + at] + row); };
      store(0, hn::InterleaveLower(pairs, ab_low, cd_low));
      store(1, hn::InterleaveUpper(pairs, ab_low, cd_low));
      store(2, hn::InterleaveLower(pairs, ab_high, cd_high));
      store(3, hn::InterleaveUpper(pairs, ab_high, cd_high));
    }
  }
}

void TransposeWords(Rows<const std::uint32_t> from, std::int64_t rows, std::int64_t columns, Rows<std::uint32_t> to) {
  transpose_words([&](std::int64_t row, std::int64_t column)
                      HWY_ATTR { return hn::LoadU(WordsOfBlock(), from[row] + column); },
                  rows, columns, to);
}

// Rows of words, each two bf16 that are adjacent along k.
void TransposePairs(Rows<const bf16> from, std::int64_t rows, std::int64_t columns, Rows<std::uint32_t> to) {
  transpose_words(
      [&](std::int64_t row, std::int64_t column) HWY_ATTR {
        const hn::FixedTag<std::uint16_t, 4> four;
        const hn::FixedTag<std::uint16_t, 8> eight;
        const auto even = hn::LoadU(four, bits_of(from[2 * row] + column));
        const auto odd = hn::LoadU(four, bits_of(from[2 * row + 1] + column));
        return hn::BitCast(WordsOfBlock(), hn::InterleaveLower(eight, hn::ZeroExtendVector(eight, even),
                                                               hn::ZeroExtendVector(eight, odd)));
      },
      rows / 2, columns, to);
}

void PackPairs(Rows<const bf16> from, std::int64_t k, std::int64_t n, std::uint32_t* packed) {
  const Words words;
  const auto widened = [&](const bf16* at) HWY_ATTR { return hn::PromoteTo(words, hn::LoadU(Halves(), bits_of(at))); };
  for (std::int64_t column = 0; column < n; column += block_grain) {
    for (std::int64_t row = 0; row < k; row += 2, packed += block_grain) {
      for (std::int64_t i = 0; i < block_grain; i += lane_count) {
        const auto odd = hn::ShiftLeft<16>(widened(from[row + 1] + column + i));
        hn::StoreU(hn::Or(widened(from[row] + column + i), odd), words, packed + i);
      }
    }
  }
}

// Products of two vectors of b, at `panel`, with an element of a for each of `rows` rows.
template <int rows>
struct Tile {
  hn::Vec<Floats> sums[rows][2];

  HWY_INLINE Tile(Rows<float> c, bool accumulate) {
    for (int row = 0; row < rows; ++row) {
      for (int half = 0; half < 2; ++half)
        sums[row][half] = accumulate ? hn::LoadU(Floats(), c[row] + half * lane_count) : hn::Zero(Floats());
    }
  }
  HWY_INLINE void store(Rows<float> c) const {
    for (int row = 0; row < rows; ++row) {
      for (int half = 0; half < 2; ++half) hn::StoreU(sums[row][half], Floats(), c[row] + half * lane_count);
    }
  }
  HWY_INLINE void add(int row, float a, hn::Vec<Floats> left, hn::Vec<Floats> right) {
    const auto factor = hn::Set(Floats(), a);
    sums[row][0] = hn::MulAdd(factor, left, sums[row][0]);
    sums[row][1] = hn::MulAdd(factor, right, sums[row][1]);
  }
  HWY_INLINE void add_all(std::int64_t k, Rows<const float> a, const float* panel) {
    const float* column = a.data;
    for (std::int64_t i = 0; i < k; ++i, panel += block_grain, ++column) {
      const auto left = hn::LoadU(Floats(), panel), right = hn::LoadU(Floats(), panel + lane_count);
      for (int row = 0; row < rows; ++row) add(row, column[row * a.stride], left, right);
    }
  }
  HWY_INLINE void add_all(std::int64_t k, Rows<const bf16> a, const bf16* pairs) {
    const Words words;
    const auto* panel = reinterpret_cast<const std::uint32_t*>(pairs);
    const bf16* column = a.data;
    const auto upper = hn::Set(words, 0xFFFF0000U);
    const auto as_floats = [](auto bits) HWY_ATTR { return hn::BitCast(Floats(), bits); };
    for (std::int64_t i = 0; i < k; i += 2, panel += block_grain, column += 2) {
      const auto left = hn::LoadU(words, panel), right = hn::LoadU(words, panel + lane_count);
      const auto even_left = as_floats(hn::ShiftLeft<16>(left)), even_right = as_floats(hn::ShiftLeft<16>(right));
      for (int row = 0; row < rows; ++row) add(row, widen(column[row * a.stride]), even_left, even_right);
      const auto odd_left = as_floats(hn::And(left, upper)), odd_right = as_floats(hn::And(right, upper));
      for (int row = 0; row < rows; ++row) add(row, widen(column[row * a.stride + 1]), odd_left, odd_right);
    }
  }
};

// Rows [m, m + rows) of c, two vectors from column n on. Returns `rows`.
template <int rows, class T>
HWY_INLINE std::int64_t multiply_tile(const BlockExtents& extents, Rows<const T> a, const T* panel, Rows<float> c,
                                      bool accumulate) {
  Tile<rows> tile(c, accumulate);
  tile.add_all(extents.k, a, panel);
  tile.store(c);
  return rows;
}

template <class T>
HWY_INLINE void multiply_blocks(const BlockExtents& extents, Rows<const T> a, const T* b, Rows<float> c,
                                bool accumulate) {
  constexpr std::int64_t is_word_character = 4 / sizeof(T);  // columns of a panel per word
  for (std::int64_t n = 0; n < extents.n; n += 2 * lane_count) {
    const std::int64_t inside = n % block_grain;
    const T* panel = b + (n - inside) * extents.packed_k + inside * is_word_character;
    for (std::int64_t m = 0; m < extents.m;) {
      const Rows<const T> rows = a.from(m);
      const Rows<float> sums = c.from(m, n);
      const std::int64_t left = extents.m - m;
      m += left >= tile_rows ? multiply_tile<tile_rows>(extents, rows, panel, sums, accumulate)
           : left >= 4       ? multiply_tile<4>(extents, rows, panel, sums, accumulate)
           : left >= 2       ? multiply_tile<2>(extents, rows, panel, sums, accumulate)
                             : multiply_tile<1>(extents, rows, panel, sums, accumulate);
    }
  }
}

void MultiplyF32(const BlockExtents& extents, Rows<const float> a, const float* b, Rows<float> c, bool accumulate) {
  multiply_blocks(extents, a, b, c, accumulate);
}
void MultiplyBf16(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate) {
  multiply_blocks(extents, a, b, c, accumulate);
}

}  // namespace gpubench::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace gpubench::cpu {
namespace {

HWY_EXPORT(TransposeWords);
HWY_EXPORT(TransposePairs);
HWY_EXPORT(PackPairs);
HWY_EXPORT(MultiplyF32);
HWY_EXPORT(MultiplyBf16);

// Panels of 32 columns: each the transpose of 32 stored rows of `words` words.
void pack_transposed_words(Rows<const std::uint32_t> from, std::int64_t words, std::int64_t n, std::uint32_t* packed) {
  for (std::int64_t column = 0; column < n; column += block_grain) {
    HWY_DYNAMIC_DISPATCH(TransposeWords)
    (from.from(column), block_grain, words, {packed + column * words, block_grain});
  }
}

// Rows of bf16 as rows of pairs. Padded blocks have an even stride.
Rows<const std::uint32_t> words_of(Rows<const bf16> rows) {
  return {reinterpret_cast<const std::uint32_t*>(rows.data), rows.stride / 2};
}
Rows<const std::uint32_t> words_of(Rows<const float> rows) {
  return {reinterpret_cast<const std::uint32_t*>(rows.data), rows.stride};
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
  HWY_DYNAMIC_DISPATCH(PackPairs)(from, k, n, reinterpret_cast<std::uint32_t*>(packed));
}

void pack_transposed(Rows<const float> from, std::int64_t k, std::int64_t n, float* packed) {
  pack_transposed_words(words_of(from), k, n, reinterpret_cast<std::uint32_t*>(packed));
}
void pack_transposed(Rows<const bf16> from, std::int64_t k, std::int64_t n, bf16* packed) {
  pack_transposed_words(words_of(from), k / 2, n, reinterpret_cast<std::uint32_t*>(packed));
}

void transpose(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<float> to) {
  HWY_DYNAMIC_DISPATCH(TransposeWords)
  (words_of(from), rows, columns, {reinterpret_cast<std::uint32_t*>(to.data), to.stride});
}
void transpose(Rows<const bf16> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to) {
  HWY_DYNAMIC_DISPATCH(TransposePairs)
  (from, rows, columns, {reinterpret_cast<std::uint32_t*>(to.data), to.stride / 2});
}

void round_block(Rows<const float> from, std::int64_t rows, std::int64_t columns, Rows<bf16> to) {
  for (std::int64_t row = 0; row < rows; ++row) narrow_run(from[row], columns, to[row]);
}

void multiply(const BlockExtents& extents, Rows<const float> a, const float* b, Rows<float> c, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(MultiplyF32)(extents, a, b, c, accumulate);
}
void multiply(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate) {
  if (amx::has_amx()) {
    amx::multiply(extents, a, b, c, accumulate);
  } else {
    HWY_DYNAMIC_DISPATCH(MultiplyBf16)(extents, a, b, c, accumulate);
  }
}
void multiply_widened(const BlockExtents& extents, Rows<const bf16> a, const bf16* b, Rows<float> c, bool accumulate) {
  HWY_DYNAMIC_DISPATCH(MultiplyBf16)(extents, a, b, c, accumulate);
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
#endif
