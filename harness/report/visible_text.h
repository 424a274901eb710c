// Untrusted text made safe to print: device names, library messages and file contents never steer a terminal.
#pragma once

#include <string>
#include <string_view>

namespace gpubench {

/// Control characters (C0, DEL, C1), those that turn the direction of text, those that show nothing (byte order marks,
/// tags, noncharacters) and bytes that are not UTF-8 as \xNN, one per byte; everything else as it is. The result is one
/// line.
[[nodiscard]] std::string printable(std::string_view text);

/// printable(), and no command on any line of a log: GitHub's runner takes `##[` anywhere for one, and `::` after no
/// more than white space (actions/runner, ActionCommand.cs). So that `[` is written as \xNN, and so is the first `:`
/// unless a word ends before it, as in `cutlass::gemm`: a line may be broken at any blank.
[[nodiscard]] std::string visible(std::string_view text);

/// `text` where it has at most `most_bytes`; else as many whole code points of it as fit before "...".
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most_bytes);

/// Columns that `text` takes on a terminal, one per code point. ANSI colours must not be in it yet.
[[nodiscard]] int columns(std::string_view text);

/// The part of `text` that takes at most `most` columns.
[[nodiscard]] std::string_view first_columns(std::string_view text, int most);

}  // namespace gpubench
