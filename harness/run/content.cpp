#include "harness/run/content.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "harness/core/hash.h"

namespace gpubench {
namespace {

constexpr std::uint64_t odd_multiplier = 0x9ddfea08eb382d69ULL;

constexpr std::byte guard_byte(std::size_t position) { return static_cast<std::byte>(0x5AU ^ (position * 29U)); }

}  // namespace

std::uint64_t fingerprint(std::span<const std::byte> bytes) {
  // Four independent lanes, so that the multiplications overlap. Each step is a bijection of its lane for a given word.
  std::array<std::uint64_t, 4> lanes{1, 2, 3, 4};
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    std::array<std::uint64_t, 4> words;
    std::memcpy(words.data(), bytes.data() + at, sizeof words);
    for (std::size_t lane = 0; lane < 4; ++lane) {
      lanes[lane] = std::rotl((lanes[lane] ^ words[lane]) * odd_multiplier, 29);
    }
  }
  std::uint64_t result = mix(bytes.size());
  for (; at < bytes.size(); ++at) result = mix(result ^ static_cast<std::uint64_t>(bytes[at]));
  for (const std::uint64_t lane : lanes) result = mix(result ^ lane);
  return result;
}

void write_guard(std::span<std::byte> zone) {
  for (std::size_t i = 0; i < zone.size(); ++i) zone[i] = guard_byte(i);
}

int damaged_bytes(std::span<const std::byte> zone) {
  int damaged = 0;
  for (std::size_t i = 0; i < zone.size(); ++i) damaged += zone[i] != guard_byte(i) ? 1 : 0;
  return damaged;
}

void reverse_elements(std::size_t element_bytes, std::span<std::byte> bytes) {
  const std::size_t count = bytes.size() / element_bytes;
  for (std::size_t i = 0, j = count; i + 1 < j; ++i) {
    --j;
    std::swap_ranges(bytes.begin() + static_cast<std::ptrdiff_t>(i * element_bytes),
                     bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * element_bytes),
                     bytes.begin() + static_cast<std::ptrdiff_t>(j * element_bytes));
  }
}

}  // namespace gpubench
