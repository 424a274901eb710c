#include "harness/run/content.h"

#include <algorithm>

namespace gpubench {
namespace {

constexpr std::byte guard_byte(std::size_t position) { return static_cast<std::byte>(0x5AU ^ (position * 29U)); }

}  // namespace

void write_guard(std::span<std::byte> zone) {
  for (std::size_t i = 0; i < zone.size(); ++i) zone[i] = guard_byte(i);
}

int damaged_bytes(std::span<const std::byte> zone) {
  int damaged = 0;
  for (std::size_t i = 0; i < zone.size(); ++i) damaged += zone[i] != guard_byte(i) ? 1 : 0;
  return damaged;
}

void reverse_elements(DType type, std::span<std::byte> bytes) {
  const auto at = [bytes](std::size_t byte) { return bytes.begin() + static_cast<std::ptrdiff_t>(byte); };
  const bool shares_bytes = bits_of(type) < 8;
  const std::size_t size = shares_bytes ? 1 : size_of(type);
  for (std::size_t i = 0, j = bytes.size() / size; i + 1 < j; ++i) {
    --j;
    std::swap_ranges(at(i * size), at((i + 1) * size), at(j * size));
  }
  for (std::byte& both : shares_bytes ? bytes : std::span<std::byte>()) both = (both << 4) | (both >> 4);
}

}  // namespace gpubench
