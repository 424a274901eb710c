// Fingerprints of bytes and scans of elements. Both are independent of the number of threads and of order; a backend's
// versions (Backend::fingerprint, Backend::scan) must give equal results.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/core/dtype.h"
#include "harness/core/hash.h"

namespace gpubench {

/// Bytes per term of a fingerprint: two words of 64 bits.
inline constexpr std::size_t fingerprint_term_bytes = 16;

/// The sum, modulo 2^64, of the terms of these bytes, which begin at term `first_term` of their storage; the last term
/// is padded with zeros. Term i of words a and b, with k = (i + 1) times the golden ratio's 64 bits, is the 128-bit
/// product of a ^ k and b ^ rotate(k, 32), its upper half XORed to the lower.
[[nodiscard]] std::uint64_t fingerprint_terms(std::span<const std::byte> bytes, std::uint64_t first_term);

[[nodiscard]] constexpr std::uint64_t fingerprint_of(std::uint64_t terms, std::uint64_t bytes) {
  return terms + mix(bytes);
}

/// 64 bits that distinguish contents, at memory speed. Different contents of one length collide with probability of
/// about 2^-64, also if they differ in one bit or in the order of their blocks. Not secure against an adversary.
[[nodiscard]] inline std::uint64_t fingerprint(std::span<const std::byte> bytes) {
  return fingerprint_of(fingerprint_terms(bytes, 0), bytes.size());
}

inline constexpr std::int64_t scan_chunk_elements = 4096;

/// The scan of one chunk. Each element is counted once.
struct ChunkScan {
  std::int32_t unwritten = 0;  ///< elements with the poison pattern
  std::int32_t nan = 0;
  std::int32_t infinite = 0;
  std::int32_t finite = 0;
  std::uint64_t largest =
      0;  ///< of the finite elements: bits without the sign; 0 where there are none, and of integers
  std::uint64_t smallest = 0;  ///< likewise
  /// Elements that must be judged.
  [[nodiscard]] std::int32_t suspects() const { return unwritten + nan + infinite; }
  friend bool operator==(const ChunkScan&, const ChunkScan&) = default;
};

/// Classification of the stored bits of a type. An element is a suspect if (bits & mask) == pattern: unwritten if bits
/// == poison, else infinite if (bits & magnitude) == infinity, else NaN.
struct ScanPattern {
  std::uint64_t mask = 0;
  std::uint64_t pattern = 0;
  std::uint64_t poison = 0;
  std::uint64_t infinity = 0;   ///< no element's value if the type has no infinities
  std::uint64_t magnitude = 0;  ///< all bits but the sign, ordered by magnitude; 0 for integers
};
[[nodiscard]] ScanPattern scan_pattern(DType type);

[[nodiscard]] ChunkScan scan_chunk(DType type, const std::byte* elements, std::int64_t count);

[[nodiscard]] constexpr std::int64_t scan_chunks(std::int64_t elements) {
  return (elements + scan_chunk_elements - 1) / scan_chunk_elements;
}

}  // namespace gpubench
