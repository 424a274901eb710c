// Small products against explicit sums: whole numbers give exact f32 sums, so results must be equal.
#include "reference/cpu/block_matmul.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <limits>
#include <vector>

#include "tests/reference/cpu/each_target.h"

namespace gpubench::cpu {
namespace block_matmul_test {

using Multiply = void (*)(const BlockExtents&, Rows<const bf16>, const bf16*, Rows<float>, bool);

// Whole numbers in [-3, 3]: exact in bf16, and sums of 160 products stay far below 2^24.
template <class T>
std::vector<T> whole_numbers(std::int64_t count, std::uint32_t seed) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525U + 1013904223U;
    values.push_back(narrow<T>(static_cast<float>((seed >> 16U) % 7U) - 3.0F));
  }
  return values;
}

template <class T>
float at(const std::vector<T>& values, std::int64_t index) {
  return widen(values[static_cast<std::size_t>(index)]);
}

// c += a b on blocks with gaps between rows, with only part of the packed k.
template <class T, class Product>
void expect_exact_products(const Product& product) {
  constexpr std::int64_t m = 64, n = 96, k = 64, packed_k = 160, a_stride = 70, b_stride = 100, c_stride = 112;
  const std::vector<T> a = whole_numbers<T>(m * a_stride, 1);
  const std::vector<T> b = whole_numbers<T>(packed_k * b_stride, 2);
  std::vector<T> packed(packed_k * n);
  pack({b.data(), b_stride}, packed_k, n, packed.data());
  std::vector<float> c(m * c_stride, 5.0F);

  const BlockMatmulScope scope;
  for (const bool accumulate : {false, true}) {
    product({m, n, k, packed_k}, {a.data(), a_stride}, packed.data(), {c.data(), c_stride}, accumulate);
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < c_stride; ++j) {
        float sum = 0.0F;
        for (std::int64_t p = 0; p < k && j < n; ++p) sum += at(a, i * a_stride + p) * at(b, p * b_stride + j);
        // The second pass adds the same products; the gaps stay.
        const float want = j >= n ? 5.0F : (accumulate ? 2.0F * sum : sum);
        ASSERT_EQ(at(c, i * c_stride + j), want) << "row " << i << " column " << j << " accumulate " << accumulate;
      }
    }
  }
}

class BlockMatmul : public gpubench::testing::EachTarget {};
GPUBENCH_ON_EACH_TARGET(BlockMatmul);

TEST_P(BlockMatmul, MultipliesF32) {
  expect_exact_products<float>([](const BlockExtents& e, Rows<const float> a, const float* b, Rows<float> c,
                                  bool accumulate) { multiply(e, a, b, c, accumulate); });
}

TEST_P(BlockMatmul, MultipliesBf16) { expect_exact_products<bf16>(static_cast<Multiply>(multiply)); }

TEST_P(BlockMatmul, MultipliesBf16WithoutTiles) { expect_exact_products<bf16>(multiply_widened); }

TEST_P(BlockMatmul, KeepsANanInItsRow) {
  const std::int64_t n = 32;
  std::vector<bf16> a(static_cast<std::size_t>(n * n), narrow<bf16>(1.0F));
  a[5 * 32 + 7] = narrow<bf16>(std::numeric_limits<float>::quiet_NaN());
  const std::vector<bf16> packed(static_cast<std::size_t>(n * n), narrow<bf16>(1.0F));
  std::vector<float> c(static_cast<std::size_t>(n * n));

  const BlockMatmulScope scope;
  multiply({n, n, n, n}, {a.data(), n}, packed.data(), {c.data(), n}, false);

  for (std::int64_t i = 0; i < n * n; ++i) {
    const float got = c[static_cast<std::size_t>(i)];
    if (i / n == 5) {
      EXPECT_NE(got, got);
    } else {
      EXPECT_EQ(got, 32.0F);
    }
  }
}

template <class T>
void expect_same_packing() {
  constexpr std::int64_t k = 64, n = 96;
  const std::vector<T> rows = whole_numbers<T>(n * k, 3);   // [n][k]
  std::vector<T> columns(static_cast<std::size_t>(n * k));  // [k][n]
  for (std::int64_t i = 0; i < n * k; ++i)
    columns[static_cast<std::size_t>(i % k * n + i / k)] = rows[static_cast<std::size_t>(i)];
  std::vector<T> transposed(static_cast<std::size_t>(n * k));
  std::vector<T> packed(static_cast<std::size_t>(n * k));
  std::vector<T> packed_transposed(static_cast<std::size_t>(n * k));

  transpose({rows.data(), k}, n, k, {transposed.data(), n});
  pack({columns.data(), n}, k, n, packed.data());
  pack_transposed({rows.data(), k}, k, n, packed_transposed.data());

  for (std::int64_t i = 0; i < n * k; ++i) {
    ASSERT_EQ(at(transposed, i), at(columns, i)) << i;
    ASSERT_EQ(at(packed, i), at(packed_transposed, i)) << i;
  }
}

TEST_P(BlockMatmul, PacksRowsAndColumnsAlikeInF32) { expect_same_packing<float>(); }
TEST_P(BlockMatmul, PacksRowsAndColumnsAlikeInBf16) { expect_same_packing<bf16>(); }

TEST_P(BlockMatmul, PadsWithZeros) {
  const std::vector<float> from(3 * 8, 2.0F);
  std::vector<float> to(32 * 40, 7.0F);

  copy_padded<float>({from.data(), 8}, 3, 5, {to.data(), 40});

  for (std::int64_t row = 0; row < 32; ++row) {
    for (std::int64_t column = 0; column < 40; ++column) {
      // Padding is zero up to 32; memory beyond must not change.
      const float want = column >= 32 ? 7.0F : (row < 3 && column < 5 ? 2.0F : 0.0F);
      ASSERT_EQ(at(to, row * 40 + column), want) << row << ", " << column;
    }
  }
}

}  // namespace block_matmul_test
}  // namespace gpubench::cpu
