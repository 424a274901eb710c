// What a storage holds, in a few numbers: a fingerprint of its bytes, and the findings of a scan of its elements. Both
// are defined so that any number of threads, of a host or a device, get the same numbers in any order; a backend that
// computes them itself (Backend::fingerprint, Backend::scan) must give what the functions here give.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/core/dtype.h"
#include "harness/core/hash.h"

namespace gpubench {

/// Bytes that make one term of a fingerprint: two words of 64 bits.
inline constexpr std::size_t fingerprint_term_bytes = 16;

/// The sum, modulo 2^64, of the terms of these bytes, which begin at term `first_term` of their storage; a last term of
/// fewer bytes is padded with zeros. Term i of words a and b, with k = (i + 1) times the golden ratio's 64 bits, is
/// the 128-bit product of a ^ k and b ^ rotate(k, 32), its upper half XORed to the lower.
[[nodiscard]] std::uint64_t fingerprint_terms(std::span<const std::byte> bytes, std::uint64_t first_term);

/// The fingerprint of `bytes` bytes whose terms add up to `terms`.
[[nodiscard]] constexpr std::uint64_t fingerprint_of(std::uint64_t terms, std::uint64_t bytes) {
  return terms + mix(bytes);
}

/// 64 bits that distinguish contents, at memory speed. Two different contents of one length share their fingerprint
/// with a probability of about 2^-64, as values of a random function would, also where they differ in one bit or in the
/// order of their blocks. It is no protection against an adversary.
[[nodiscard]] inline std::uint64_t fingerprint(std::span<const std::byte> bytes) {
  return fingerprint_of(fingerprint_terms(bytes, 0), bytes.size());
}

/// Elements per chunk of a scan.
inline constexpr std::int64_t scan_chunk_elements = 4096;

/// The findings of a scan in one chunk. Each element is counted once.
struct ChunkScan {
  std::int32_t unwritten = 0;  ///< that hold the poison pattern
  std::int32_t nan = 0;
  std::int32_t infinite = 0;
  std::int32_t finite = 0;  ///< all others
  std::uint64_t largest =
      0;  ///< of the finite elements: bits without the sign; 0 where there are none, and of integers
  std::uint64_t smallest = 0;  ///< likewise
  /// Elements that must be looked at: an op may have left them rightly or not.
  [[nodiscard]] std::int32_t suspects() const { return unwritten + nan + infinite; }
  friend bool operator==(const ChunkScan&, const ChunkScan&) = default;
};

/// How to classify the stored bits of a type: an element is a suspect where (bits & mask) == pattern; then it is
/// unwritten where bits == poison, else infinite where (bits & magnitude) == infinity, else NaN.
struct ScanPattern {
  std::uint64_t mask = 0;
  std::uint64_t pattern = 0;
  std::uint64_t poison = 0;
  std::uint64_t infinity = 0;   ///< a value that no element has where the type has no infinities
  std::uint64_t magnitude = 0;  ///< all bits but the sign, which are in the order of the magnitudes; 0 for integers
};
[[nodiscard]] ScanPattern scan_pattern(DType type);

/// Scans `count` adjacent elements, at most scan_chunk_elements, at any address.
[[nodiscard]] ChunkScan scan_chunk(DType type, const std::byte* elements, std::int64_t count);

/// The number of chunks of this many elements.
[[nodiscard]] constexpr std::int64_t scan_chunks(std::int64_t elements) {
  return (elements + scan_chunk_elements - 1) / scan_chunk_elements;
}

}  // namespace gpubench
