// Charts made of rows: each a line of text with its mark below, and one axis under all of them.
//
// The text is above the mark, not beside it, so that a long case id and its result both fit on a phone.
#pragma once

#include <string>
#include <vector>

#include "harness/page/chart/axis.h"
#include "harness/page/chart/canvas.h"

namespace gpubench::chart {

constexpr double rows_left = 12.0;
constexpr double rows_right = 408.0;

/// The x position of a value.
[[nodiscard]] double across(const AxisScale& scale, double value);

/// The label at the left, in at most two lines, the text at the right of the last; both shortened to fit.
/// Returns the y below them.
double draw_row_words(Canvas& canvas, double y, const std::string& label, const std::string& text,
                      const char* style = "c-text");

/// An interval from `left` to `right`, with its ends marked; an arrow marks an end outside the rows.
void draw_row_whisker(Canvas& canvas, double left, double right, double y);

/// The vertical extent of a row's marks.
struct Span {
  double top = 0.0;
  double bottom = 0.0;
};

/// Ticks and title below `bottom`, and faint lines behind the marks of each row, not behind its text. Call it before
/// the rows are drawn, so that they cover it. Returns the y below it.
double draw_value_axis(Canvas& canvas, const AxisScale& scale, const std::vector<Span>& marks, double bottom);

}  // namespace gpubench::chart
