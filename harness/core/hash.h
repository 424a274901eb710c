// Hashes that are equal on every machine, for fills, samples and seeds. Integer arithmetic only.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpubench {

/// A bijective mix of 64 bits in which every input bit moves every output bit (the finalizer of SplitMix64:
/// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

/// FNV-1a over the bytes, then mixed; chain texts by passing the last result as `seed`.
[[nodiscard]] constexpr std::uint64_t hash(std::string_view text, std::uint64_t seed = 0) {
  std::uint64_t h = 0xcbf29ce484222325ULL ^ seed;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix(h);
}

/// The value at position `index` of the stream `key`: random access for any rank or thread.
[[nodiscard]] constexpr std::uint64_t hash_at(std::uint64_t key, std::uint64_t index) { return mix(key ^ mix(index)); }

/// CRC-32 as in zlib and PNG (polynomial 0xEDB88320): crc32("123456789") is 0xCBF43926. Detects torn messages and
/// lines, not forgery.
[[nodiscard]] std::uint32_t crc32(std::string_view bytes);

}  // namespace gpubench
