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
