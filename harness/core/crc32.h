// A checksum against accidents: a message or a line that was torn, not one that was forged.
#pragma once

#include <cstdint>
#include <string_view>

namespace gpubench {

/// CRC-32 as in zlib and PNG (polynomial 0xEDB88320): crc32("123456789") is 0xCBF43926.
[[nodiscard]] std::uint32_t crc32(std::string_view bytes);

}  // namespace gpubench
