// The area between the axes of a plot, its marks, and the thinning of points.
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
  double inset = 9.0;     ///< between frame and data, for whole markers
  double headroom = 0.0;  ///< above the data, for labels of guides

  [[nodiscard]] double at_x(double value) const {
    return left + inset + x.position(value) * (right - left - 2.0 * inset);
  }
  [[nodiscard]] double at_y(double value) const {
    return bottom - inset - y.position(value) * (bottom - top - headroom - 2.0 * inset);
  }
};

/// Lines, markers, ranges and whiskers, in a group of class c-series with data-series `index`.
void draw_series(Canvas& canvas, const PlotArea& area, const Series& series, std::size_t index);

/// The part of a guide within the axes; segments are straight on these scales.
[[nodiscard]] std::vector<Point> clipped(const Guide& guide, const AxisScale& x, const Axis& y);

/// Dashed lines. The label of a level guide is above its right end; that of a sloped one is next to its upper half,
/// where no data are under a limit. Labels never overlap.
void draw_guides(Canvas& canvas, const PlotArea& area, const std::vector<Guide>& guides);
void draw_guide_labels(Canvas& canvas, const PlotArea& area, const std::vector<Guide>& guides);

/// More points in one drawing are thinned.
constexpr std::size_t max_points = 10000;

/// Keeps at most `most` points and returns the original number. Each series keeps its share: of equal stretches the
/// lowest and the highest point, and its first and last. Deterministic. Series of up to four points stay whole, even if
/// `most` is exceeded.
std::size_t thin(std::vector<Series>& series, std::size_t most = max_points);

/// Indices to keep, ascending, chosen as by thin(): at most `most`, at least four.
[[nodiscard]] std::vector<std::size_t> kept(const std::vector<double>& values, std::size_t most);

[[nodiscard]] std::string thinned_sentence(std::size_t points);

}  // namespace gpubench::chart
