// Untrusted text made safe to print: device names, library messages and file contents never steer a terminal.
#pragma once

#include <string>
#include <string_view>

namespace gpubench {

/// Control characters (C0, DEL, C1, bidirectional overrides) and bytes that are not UTF-8 as \xNN, one per byte;
/// everything else as it is. The result is one line.
[[nodiscard]] std::string visible(std::string_view text);

/// Columns that `text` takes on a terminal, one per code point. ANSI colours must not be in it yet.
[[nodiscard]] int columns(std::string_view text);

}  // namespace gpubench
