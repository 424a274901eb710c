// The look of all charts: colours, fonts, markers, legends, and text that must fit.
//
// Colours of data are Okabe and Ito's (Color Universal Design, jfly.uni-koeln.de/color), distinguishable with any
// common form of colour vision, the same in light and dark. Text, lines and paper change. Since the reader's font is
// unknown, widths are those of a wide common one.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/page/chart/canvas.h"

namespace gpubench::chart {

// In user units. On a phone of 320 pixels the smallest text of a drawing still has 9 pixels.
constexpr double chart_width = 420.0;
constexpr double text_size = 14.0;
constexpr double title_size = 16.0;
constexpr double line_height = 18.0;

/// "currentColor" is Okabe and Ito's black, white on dark paper. Without yellow, whose lines are invisible on white.
constexpr std::string_view series_colours[] = {"#0072b2", "#d55e00", "#009e73",     "#cc79a7",
                                               "#e69f00", "#56b4e9", "currentColor"};
/// Lengths on and off; empty: solid.
constexpr std::string_view series_dashes[] = {"", "7 3", "2 3", "9 3 2 3", "5 5", "12 3", "7 2 2 2 2 2", "4 2"};

[[nodiscard]] std::string_view series_colour(std::size_t series);
[[nodiscard]] std::string_view series_dash(std::size_t series);

/// "#000000" or "#ffffff", the one with more contrast on #rrggbb: at least 4.58:1 (WCAG 2.1, contrast ratio).
[[nodiscard]] std::string_view text_on(std::string_view colour);

/// A blue #rrggbb from nearly white (0) to nearly black (1), monotonic in lightness. Clamps; NaN is 0.
[[nodiscard]] std::string shade_colour(double shade);

/// In user units, as `font_size`. At least the width in Arial and Helvetica.
[[nodiscard]] double text_width(std::string_view text, double font_size);

/// Escapes control characters (visible_text.h) and cuts with an ellipsis at `width`.
[[nodiscard]] std::string shortened(std::string_view text, double width, double font_size);

/// As shortened(), by number of characters: for text read out or shown on hover.
[[nodiscard]] std::string cut(std::string_view text, std::size_t characters);

/// At most `lines` lines of at most `width`, broken preferably after a space or one of /,;_; shortens the last. No line
/// for "".
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, double width, double font_size, int lines);

/// Circle, square, triangle, diamond, triangle pointing down, plus, hexagon, cross; then repeats.
constexpr std::size_t marker_shapes = 8;

/// At (x, y); a note is shown on hover. Hollow if doubtful.
void draw_marker(Canvas& canvas, std::size_t series, double x, double y, std::string_view note = {},
                 bool doubtful = false);

/// A mean with its interval from `left` to `right`.
void draw_diamond(Canvas& canvas, double left, double middle, double right, double y, std::string_view note);

struct LegendEntry {
  std::size_t series = 0;  ///< index of colour, marker and dash
  std::string name;
  bool line = false;  ///< with a line sample
};

/// Returns the y below. Each entry is a group of class c-key with its data-series.
double draw_legend(Canvas& canvas, const std::vector<LegendEntry>& entries, double y);

/// Explains hollow markers. Returns the y below.
double draw_unreliable_key(Canvas& canvas, double y);

}  // namespace gpubench::chart
