// How series are distinguished: the markers of their points, one shape per series, and the legend that names them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/chart/canvas.h"

namespace gpubench::chart {

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
