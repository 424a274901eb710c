// The rectangle between the axes of a plot, what is drawn in it, and the choice of points where there are too many.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/page/chart/axis.h"
#include "harness/page/chart/canvas.h"
#include "harness/page/chart/chart.h"

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
  double headroom = 0.0;  ///< above the data as well: room for the labels of guides

  [[nodiscard]] double at_x(double value) const {
    return left + inset + x.position(value) * (right - left - 2.0 * inset);
  }
  [[nodiscard]] double at_y(double value) const {
    return bottom - inset - y.position(value) * (bottom - top - headroom - 2.0 * inset);
  }
};

/// Lines, markers, ranges and whiskers of one series, in a group of class c-series with its data-series.
void draw_series(Canvas& canvas, const PlotArea& area, const Series& series, std::size_t index);

/// The part of a guide between two values of x, with its ends cut where it crosses them; straight on these scales.
[[nodiscard]] std::vector<Point> clipped(const Guide& guide, const AxisScale& x, const Axis& y);

/// Dashed lines. The label of one that ends level stands over its right end, that of one that rises or falls beside its
/// upper half, where under a limit no data are; those at the end one above the other, never on each other.
void draw_guides(Canvas& canvas, const PlotArea& area, const std::vector<Guide>& guides);
void draw_guide_labels(Canvas& canvas, const PlotArea& area, const std::vector<Guide>& guides);

/// More points than this in one drawing are thinned.
constexpr std::size_t most_points = 10000;

/// Leaves at most `most` points in all: each series keeps its share, in equal stretches of its order, and of each
/// stretch the lowest and the highest; a series' first and last points stay. The same points for the same data.
/// Series of four points or fewer stay as they are, even where there are so many of them that `most` is exceeded.
/// Returns how many points there were.
std::size_t thin(std::vector<Series>& series, std::size_t most = most_points);

/// The indices of the values to keep so that at most `most` remain, ascending; chosen as thin() does, at least four.
[[nodiscard]] std::vector<std::size_t> kept(const std::vector<double>& values, std::size_t most);

/// The sentence that says so in a description.
[[nodiscard]] std::string thinned_sentence(std::size_t points);

}  // namespace gpubench::chart
