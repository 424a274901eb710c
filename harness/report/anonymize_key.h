// The key that names are hashed under: a user's own, in a file that nobody else can read.
//
// One key gives one machine one name in all reports, which comparing needs. Who has the key can find names by trying
// them; who has not cannot. A lost key means new names.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gpubench {

// SipHash-2-4: a hash that nobody without its key can work out, so that a name cannot be found by trying all names
// (Aumasson, Bernstein, "SipHash: a fast short-input PRF", 2012).

/// 128 bits, as the two little-endian words of the paper.
struct HashKey {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
};

/// The hash of the bytes under the key.
[[nodiscard]] constexpr std::uint64_t keyed_hash(const HashKey& key, std::string_view bytes) {
  std::uint64_t v0 = key.low ^ 0x736f6d6570736575ULL, v1 = key.high ^ 0x646f72616e646f6dULL;
  std::uint64_t v2 = key.low ^ 0x6c7967656e657261ULL, v3 = key.high ^ 0x7465646279746573ULL;
  const auto rounds = [&](int count) {
    for (; count > 0; --count) {
      v0 += v1, v1 = std::rotl(v1, 13) ^ v0, v0 = std::rotl(v0, 32);
      v2 += v3, v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3, v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1, v1 = std::rotl(v1, 17) ^ v2, v2 = std::rotl(v2, 32);
    }
  };
  const auto take = [&](std::uint64_t word) {
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  };
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    word |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8U * (i % 8U));
    if (i % 8U == 7U) {
      take(word);
      word = 0;
    }
  }
  take(word | static_cast<std::uint64_t>(bytes.size()) << 56U);
  v2 ^= 0xffU;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

/// $XDG_CONFIG_HOME/gpubench/anonymize.key, else ~/.config/gpubench/anonymize.key; "" where neither folder is known.
[[nodiscard]] std::string default_key_file(std::string_view xdg_config_home, std::string_view home);

/// The key in a file: 32 hexadecimal digits and a line's end. Where there is none, a new one is drawn and kept there
/// (0600). Throws ReadError for what is no key, and for a file that others than this user could read or have written;
/// WriteError where a new one cannot be kept.
[[nodiscard]] HashKey anonymize_key(const std::string& path);

}  // namespace gpubench
