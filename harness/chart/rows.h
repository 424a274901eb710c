// Charts of rows: a line of words, below it what they say, one row below the other; and the axis under them all.
//
// Words stand above and not beside: so a long case id and its result both fit on a phone.
#pragma once

#include <string>
#include <vector>

#include "harness/chart/axis.h"
#include "harness/chart/canvas.h"

namespace gpubench::chart {

constexpr double rows_left = 12.0;
constexpr double rows_right = 408.0;

/// Where a value stands across the drawing.
[[nodiscard]] double across(const AxisScale& scale, double value);

/// The label at the left, in at most two lines, the text at the right of the last; both shortened to fit.
/// Returns the y below them.
double draw_row_words(Canvas& canvas, double y, const std::string& label, const std::string& text,
                      const char* style = "c-text");

/// An interval from `left` to `right`, with its ends marked; an arrow stands for an end outside of the rows.
void draw_row_whisker(Canvas& canvas, double left, double right, double y);

/// Where a row's marks stand.
struct Span {
  double top = 0.0;
  double bottom = 0.0;
};

/// Ticks and title below `bottom`, and faint lines behind the marks of each row, not behind its words. Drawn before the
/// rows, for they lie over it. Returns where it ends.
double draw_value_axis(Canvas& canvas, const AxisScale& scale, const std::vector<Span>& marks, double bottom);

}  // namespace gpubench::chart
