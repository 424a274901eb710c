// The look that all charts share: colours, type, how series are distinguished and named in the legend, and text that
// has to fit.
//
// Colours of data are Okabe and Ito's (Color Universal Design, jfly.uni-koeln.de/color): people with any common form of
// colour vision can tell them apart. They are the same in light and dark; text, lines and paper change.
//
// The reader's font is not known: widths are those of a wide common one, so that what fits by them fits in most.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/page/chart/canvas.h"

namespace gpubench::chart {

// Sizes in user units. A drawing is 420 wide: on a phone of 320 pixels its smallest text still has 9 of them.
constexpr double chart_width = 420.0;
constexpr double text_size = 14.0;
constexpr double title_size = 16.0;
constexpr double line_height = 18.0;

/// Colours of series, in order; "currentColor" is Okabe and Ito's black, which is white on dark paper.
/// Yellow is not among them: a yellow line can't be seen on white.
constexpr std::string_view series_colours[] = {"#0072b2", "#d55e00", "#009e73",     "#cc79a7",
                                               "#e69f00", "#56b4e9", "currentColor"};
/// Dashes of lines, in order, as lengths on and off; empty: solid.
constexpr std::string_view series_dashes[] = {"", "7 3", "2 3", "9 3 2 3", "5 5", "12 3", "7 2 2 2 2 2", "4 2"};

[[nodiscard]] std::string_view series_colour(std::size_t series);
[[nodiscard]] std::string_view series_dash(std::size_t series);

/// "#000000" or "#ffffff", whichever has more contrast on a colour #rrggbb: at least 4.58:1 on any
/// (WCAG 2.1, contrast ratio).
[[nodiscard]] std::string_view text_on(std::string_view colour);

/// A blue for 0 to 1, from nearly white to nearly black, darker for more in black and white too: #rrggbb. Values
/// outside [0, 1] are clamped; NaN is 0.
[[nodiscard]] std::string shade_colour(double shade);

/// Width of `text` as it will be shown, in user units, at a font size in the same. At least that of Arial and
/// Helvetica.
[[nodiscard]] double text_width(std::string_view text, double font_size);

/// `text` made visible (visible_text.h), cut at the end with an ellipsis where it is wider than `width`.
[[nodiscard]] std::string shortened(std::string_view text, double width, double font_size);

/// `text` made visible, cut with an ellipsis after this many characters: for text that is read out or shown on hover.
[[nodiscard]] std::string cut(std::string_view text, std::size_t characters);

/// `text` in at most `lines` lines of at most `width`, broken after a space or one of /,;_ where there is one, the
/// last line shortened. Without text: no line.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, double width, double font_size, int lines);

/// Circle, square, triangle, diamond, triangle pointing down, plus, hexagon, cross; then from the start.
constexpr std::size_t marker_shapes = 8;

/// Draws the marker of a series around (x, y); a note is shown on hover. Hollow where it is doubtful.
void draw_marker(Canvas& canvas, std::size_t series, double x, double y, std::string_view note = {},
                 bool doubtful = false);

/// A diamond from `left` to `right`: a mean over others, with its interval.
void draw_diamond(Canvas& canvas, double left, double middle, double right, double y, std::string_view note);

struct LegendEntry {
  std::size_t series = 0;  ///< decides colour, marker and dash
  std::string name;
  bool line = false;  ///< a line with its dash, beside the marker
};

/// Draws from y downwards and returns the y below it. Each entry is a group of class c-key with its data-series.
double draw_legend(Canvas& canvas, const std::vector<LegendEntry>& entries, double y);

/// One line that explains hollow markers. Returns the y below it.
double draw_doubtful_key(Canvas& canvas, double y);

}  // namespace gpubench::chart
