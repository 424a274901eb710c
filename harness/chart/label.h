// Text that has to fit: how wide it will be, and what of it is shown where it would be too wide.
//
// Nobody knows the reader's font here. Widths are those of a wide common one, so that what fits by them fits in most.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpubench::chart {

/// Width of `text` as it will be shown, in user units, at a font size in the same. At least that of Arial and
/// Helvetica.
[[nodiscard]] double text_width(std::string_view text, double font_size);

/// `text` made visible (visible_text.h), cut at the end with an ellipsis where it is wider than `width`.
[[nodiscard]] std::string shortened(std::string_view text, double width, double font_size);

/// `text` made visible, cut with an ellipsis after so many characters: for what is read out or shown on hover.
[[nodiscard]] std::string cut(std::string_view text, std::size_t characters);

/// `text` in at most `lines` lines of at most `width`, broken after a space or one of /,;_ where there is one, the
/// last line shortened. Without text: no line.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, double width, double font_size, int lines);

}  // namespace gpubench::chart
