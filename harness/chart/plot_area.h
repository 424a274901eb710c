// The rectangle between the axes of a plot, and what is drawn in it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/chart/axis.h"
#include "harness/chart/canvas.h"
#include "harness/chart/chart.h"

namespace gpubench::chart {

/// In user units, y downwards.
struct PlotArea {
  AxisScale x;
  AxisScale y;
  double left = 0.0;
  double right = 0.0;
  double top = 0.0;
  double bottom = 0.0;
  double inset = 9.0;     ///< between the frame and the data, so that no marker is cut off
  double headroom = 0.0;  ///< above the data as well: where labels of bands stand

  [[nodiscard]] double at_x(double value) const {
    return left + inset + x.position(value) * (right - left - 2.0 * inset);
  }
  [[nodiscard]] double at_y(double value) const {
    return bottom - inset - y.position(value) * (bottom - top - headroom - 2.0 * inset);
  }
};

/// Lines, markers, ranges and whiskers of one series, in a group of class c-series with its data-series.
void draw_series(Canvas& canvas, const PlotArea& area, const Series& series, std::size_t index);

/// Whether the mark has a line, which the legend then shows.
[[nodiscard]] bool has_line(Mark mark);

/// The part of a guide between two values of x, with its ends cut where it crosses them; straight on these scales.
[[nodiscard]] std::vector<Point> clipped(const Guide& guide, const AxisScale& x, const Axis& y);

/// Stripes behind the data, each named at its top where the name has room.
void draw_bands(Canvas& canvas, const PlotArea& area, const std::vector<Band>& bands);

/// Dashed lines. The label of a level one stands over its right end, that of a rising or falling one beside its upper
/// half, where under a limit no data are; those at the end one above the other, never on each other.
void draw_guides(Canvas& canvas, const PlotArea& area, const std::vector<Guide>& guides);
void draw_guide_labels(Canvas& canvas, const PlotArea& area, const std::vector<Guide>& guides);

}  // namespace gpubench::chart
