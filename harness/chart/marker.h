// The shapes that stand for points: one per series, told apart without colour.
#pragma once

#include <cstddef>
#include <string_view>

#include "harness/chart/canvas.h"

namespace gpubench::chart {

/// Circle, square, triangle, diamond, triangle on its head, plus, hexagon, cross; then again.
constexpr std::size_t marker_shapes = 8;

/// Draws the marker of a series around (x, y); a note is shown on hover. Hollow where it is doubtful.
void draw_marker(Canvas& canvas, std::size_t series, double x, double y, std::string_view note = {},
                 bool doubtful = false);

/// A diamond from `left` to `right`: a mean over others, with its interval.
void draw_diamond(Canvas& canvas, double left, double middle, double right, double y, std::string_view note);

}  // namespace gpubench::chart
