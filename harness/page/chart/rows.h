// Charts of rows with one axis below. The text is above each mark, so that long case ids and results fit on a phone.
#pragma once

#include <string>
#include <vector>

#include "harness/page/chart/axis.h"
#include "harness/page/chart/canvas.h"

namespace gpubench::chart {

constexpr double rows_left = 12.0;
constexpr double rows_right = 408.0;

[[nodiscard]] double across(const AxisScale& scale, double value);

/// `label`: left, up to two lines. `text`: right of the last. Shortens both to fit. Returns the y below them.
double draw_row_text(Canvas& canvas, double y, const std::string& label, const std::string& text,
                     const char* style = "c-text");

void draw_row_whisker(Canvas& canvas, double left, double right, double y);

struct Span {
  double top = 0.0;
  double bottom = 0.0;
};

/// Ticks and title below `bottom`, and faint lines behind the marks of each row. Draw it before the rows, which cover
/// it. Returns the y below it.
double draw_value_axis(Canvas& canvas, const AxisScale& scale, const std::vector<Span>& marks, double bottom);

}  // namespace gpubench::chart
