// What can be done with the raw bytes of a storage on the host: guard and reverse.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "harness/core/dtype.h"

namespace gpubench {

/// Bytes before and after each storage that nobody may write.
inline constexpr std::size_t guard_bytes = 256;
/// Fills a guard zone with its pattern.
void write_guard(std::span<std::byte> zone);
/// How many bytes of a guard zone differ from the pattern.
[[nodiscard]] int damaged_bytes(std::span<const std::byte> zone);

/// Swaps the elements of that type that fill `bytes` end to end: other data with the same distribution, signs and
/// ranges, at memory speed.
void reverse_elements(DType type, std::span<std::byte> bytes);

}  // namespace gpubench
