#include "harness/core/storage_content.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <vector>

namespace gpubench {
namespace {

std::vector<std::byte> counting(std::size_t bytes) {
  std::vector<std::byte> content(bytes);
  for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>(i);
  return content;
}

// Expected value from Python's integers: bytes 0, 1, ... 36, the last term padded with zeros.
TEST(Fingerprint, IsTheSumOfItsTermsAndTheMixedLength) {
  EXPECT_EQ(fingerprint({}), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(fingerprint(counting(37)), 0x331333e6f9c6b34fULL);
}

TEST(Fingerprint, ChangesWithEveryBitAndWithTheLength) {
  std::vector<std::byte> bytes(77, std::byte{0});  // four terms and a tail of 13
  std::set<std::uint64_t> seen{fingerprint(bytes), fingerprint(std::span(bytes).first(76))};
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    seen.insert(fingerprint(bytes));
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
  }
  EXPECT_EQ(seen.size(), 2 + 8 * bytes.size());
}

// Also pairs of faults: two signs (the highest bits of words), one bit in two elements.
TEST(Fingerprint, ChangesWithEveryTwoBits) {
  std::vector<std::byte> bytes(32, std::byte{0});
  const auto flip = [&](std::size_t bit) { bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8)); };
  std::set<std::uint64_t> seen;
  for (std::size_t a = 0; a < 8 * bytes.size(); ++a) {
    flip(a);
    for (std::size_t b = 0; b < a; ++b) {
      flip(b);
      seen.insert(fingerprint(bytes));
      flip(b);
    }
    flip(a);
  }
  EXPECT_EQ(seen.size(), 256U * 255U / 2U);
}

TEST(Fingerprint, ChangesWithEveryTwoSwappedBlocks) {
  const std::vector<std::byte> bytes = counting(256);
  std::set<std::uint64_t> seen{fingerprint(bytes)};
  std::size_t swaps = 0;
  for (const std::size_t block : {4U, 8U, 16U, 64U}) {
    for (std::size_t a = 0; a < bytes.size(); a += block) {
      for (std::size_t b = 0; b < a; b += block, ++swaps) {
        std::vector<std::byte> swapped = bytes;
        std::swap_ranges(swapped.begin() + static_cast<std::ptrdiff_t>(a),
                         swapped.begin() + static_cast<std::ptrdiff_t>(a + block),
                         swapped.begin() + static_cast<std::ptrdiff_t>(b));
        seen.insert(fingerprint(swapped));
      }
    }
  }
  EXPECT_EQ(seen.size(), 1 + swaps);
}

TEST(Fingerprint, TermsOfPiecesAddUp) {
  const std::vector<std::byte> bytes = counting(101);
  const std::uint64_t terms =
      fingerprint_terms(std::span(bytes).subspan(48), 3) + fingerprint_terms(std::span(bytes).first(48), 0);
  EXPECT_EQ(fingerprint_of(terms, 101), fingerprint(bytes));
}

TEST(ScanChunk, CountsEachElementOnceAndKeepsTheExtremeMagnitudes) {
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    const std::size_t size = size_of(type);
    std::vector<std::byte> bytes(50 * size + 1);
    std::byte* const first = bytes.data() + 1;  // at any address
    for (std::size_t i = 0; i < 50; ++i) store(type, first + i * size, i % 2 == 0 ? 2.0 : -2.0);
    store(type, first + 3 * size, -4.0);
    store(type, first + 5 * size, 1.0);
    store(type, first + 7 * size, std::nan(""));
    store(type, first + 8 * size, -std::numeric_limits<double>::infinity());
    store(type, first + 9 * size, std::numeric_limits<double>::infinity());
    store_poison(type, first + 49 * size);
    std::uint64_t four = 0;
    std::uint64_t one = 0;
    store(type, reinterpret_cast<std::byte*>(&four), 4.0);
    store(type, reinterpret_cast<std::byte*>(&one), 1.0);

    EXPECT_EQ(scan_chunk(type, first, 50), (ChunkScan{1, 1, 2, 46, four, one})) << name(type);
    EXPECT_EQ(scan_chunk(type, first + 7 * size, 3), (ChunkScan{0, 1, 2, 0, 0, 0})) << name(type);
  }
}

TEST(ScanChunk, ClassifiesTypesOfOneByteAndIntegersByTheirPatterns) {
  // e4m3 has no infinity, and its poison is its NaN without a sign; with a sign it is another NaN.
  const std::vector<unsigned char> e4m3{0x7f, 0xff, 0x7e, 0x81};
  EXPECT_EQ(scan_chunk(DType::f8_e4m3, reinterpret_cast<const std::byte*>(e4m3.data()), 4),
            (ChunkScan{1, 1, 0, 2, 0x7e, 0x01}));
  const std::vector<unsigned char> e5m2{0x7d, 0xfc, 0x7f, 0x7b};
  EXPECT_EQ(scan_chunk(DType::f8_e5m2, reinterpret_cast<const std::byte*>(e5m2.data()), 4),
            (ChunkScan{1, 1, 1, 1, 0x7b, 0x7b}));
  const std::vector<unsigned char> e2m1{0x0f, 0x7f, 0x09};  // -6, which is the poison, and 0; -6 and 6; -0.5
  EXPECT_EQ(scan_chunk(DType::f4_e2m1, reinterpret_cast<const std::byte*>(e2m1.data()), 5),
            (ChunkScan{2, 0, 0, 3, 0x7, 0x0}));
  const std::vector<std::int32_t> numbers{7, static_cast<std::int32_t>(0xa5a5a5a5), -1};
  EXPECT_EQ(scan_chunk(DType::i32, reinterpret_cast<const std::byte*>(numbers.data()), 3),
            (ChunkScan{1, 0, 0, 2, 0, 0}));
  EXPECT_EQ(scan_chunk(DType::u8, nullptr, 0), ChunkScan{});
}

}  // namespace
}  // namespace gpubench
