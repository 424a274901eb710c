#include <algorithm>
#include <cmath>
#include <map>

#include "harness/chart/label.h"
#include "harness/chart/marker.h"
#include "harness/chart/plot_area.h"
#include "harness/chart/style.h"

namespace gpubench::chart {
namespace {

constexpr std::size_t longest_note = 300;

// More markers on a line than this hide the line.
constexpr std::size_t markers_on_line = 40;

bool has_interval(const PlotArea& area, const Point& point) {
  return point.low && point.high && *point.low <= *point.high && drawable(area.y.axis(), *point.low) &&
         drawable(area.y.axis(), *point.high);
}

void draw_path(Canvas& canvas, const PlotArea& area, const std::vector<Point>& points, std::size_t index, bool step) {
  PathData path;
  for (const Point& point : points) {
    const double x = area.at_x(point.x);
    if (path.empty()) {
      path.move(x, area.at_y(point.y));
      continue;
    }
    if (step) path.line(x, area.at_y((&point)[-1].y));
    path.line(x, area.at_y(point.y));
  }
  canvas.shape("path", {{"class", "c-line"}, {"stroke-dasharray", series_dash(index)}, {"d", path.text()}});
}

// Where the interval leaves the drawing, at the frame: an arrow that points there.
void add_arrow(PathData& path, const PlotArea& area, double x, bool upward) {
  const double tip = upward ? area.top + 1.5 : area.bottom - 1.5;
  const double back = upward ? tip + 5.0 : tip - 5.0;
  path.move(x - 3.5, back).line(x, tip).line(x + 3.5, back);
}

bool below(const PlotArea& area, const Point& point) { return *point.low < area.y.low(); }
bool above(const PlotArea& area, const Point& point) { return *point.high > area.y.high(); }

// One area for each run of points that have an interval.
void draw_ranges(Canvas& canvas, const PlotArea& area, const std::vector<Point>& points) {
  PathData path;
  for (std::size_t first = 0; first < points.size(); ++first) {
    std::size_t end = first;
    while (end < points.size() && has_interval(area, points[end])) ++end;
    if (end - first < 2) continue;
    path.move(area.at_x(points[first].x), area.at_y(*points[first].high));
    for (std::size_t i = first + 1; i < end; ++i) path.line(area.at_x(points[i].x), area.at_y(*points[i].high));
    for (std::size_t i = end; i-- > first;) path.line(area.at_x(points[i].x), area.at_y(*points[i].low));
    path.close();
    first = end;
  }
  if (!path.empty()) canvas.shape("path", {{"class", "c-range"}, {"d", path.text()}});
  PathData arrows;
  for (const Point& point : points) {
    if (!has_interval(area, point)) continue;
    if (below(area, point)) add_arrow(arrows, area, area.at_x(point.x), false);
    if (above(area, point)) add_arrow(arrows, area, area.at_x(point.x), true);
  }
  if (!arrows.empty()) canvas.shape("path", {{"class", "c-whisker"}, {"d", arrows.text()}});
}

void draw_whiskers(Canvas& canvas, const PlotArea& area, const std::vector<Point>& points) {
  constexpr double cap = 3.5;
  PathData path;
  for (const Point& point : points) {
    if (!has_interval(area, point)) continue;
    const double x = area.at_x(point.x);
    const double low = below(area, point) ? area.bottom - 1.5 : area.at_y(*point.low);
    const double high = above(area, point) ? area.top + 1.5 : area.at_y(*point.high);
    path.move(x, low).line(x, high);
    if (below(area, point)) {
      add_arrow(path, area, x, false);
    } else {
      path.move(x - cap, low).line(x + cap, low);
    }
    if (above(area, point)) {
      add_arrow(path, area, x, true);
    } else {
      path.move(x - cap, high).line(x + cap, high);
    }
  }
  if (!path.empty()) canvas.shape("path", {{"class", "c-whisker"}, {"d", path.text()}});
}

// The first and the last have one, and so many between them, evenly.
void draw_markers(Canvas& canvas, const PlotArea& area, const std::vector<Point>& points, std::size_t index,
                  std::size_t most) {
  const std::size_t stride = points.size() <= most ? 1 : (points.size() + most - 2) / (most - 1);
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i % stride != 0 && i + 1 != points.size()) continue;
    const Point& point = points[i];
    if (!area.y.holds(point.y)) continue;
    draw_marker(canvas, index, area.at_x(point.x), area.at_y(point.y), cut(point.note, longest_note), point.doubtful);
  }
}

// Base-2 van der Corput sequence, 0 to 1: neighbours stand far apart, and the same each time.
double spread(unsigned index) {
  double value = 0.0;
  for (double digit = 0.5; index != 0; index >>= 1U, digit *= 0.5) value += (index & 1U) != 0 ? digit : 0.0;
  return value;
}

void draw_strip(Canvas& canvas, const PlotArea& area, const std::vector<Point>& points) {
  std::map<double, unsigned> drawn;  // points of each x so far
  for (const Point& point : points) drawn[point.x] = 0;
  double half = area.inset - 3.0;
  for (auto x = drawn.begin(); x != drawn.end() && std::next(x) != drawn.end(); ++x)
    half = std::min(half, 0.4 * (area.at_x(std::next(x)->first) - area.at_x(x->first)));
  for (const Point& point : points) {
    if (!area.y.holds(point.y)) continue;
    const double aside = half * (2.0 * spread(++drawn[point.x]) - 1.0);
    canvas.shape("circle",
                 {{"class", "c-dot"}, {"cx", area.at_x(point.x) + aside}, {"cy", area.at_y(point.y)}, {"r", 2.6}},
                 cut(point.note, longest_note));
  }
}

}  // namespace

bool has_line(Mark mark) { return mark == Mark::line || mark == Mark::step; }

void draw_series(Canvas& canvas, const PlotArea& area, const Series& series, std::size_t index) {
  canvas.open("g", {{"class", "c-series"},
                    {"data-series", static_cast<int>(index)},
                    {"fill", series_colour(index)},
                    {"stroke", series_colour(index)}});
  switch (series.mark) {
    case Mark::line:
      draw_ranges(canvas, area, series.points);
      draw_path(canvas, area, series.points, index, false);
      draw_markers(canvas, area, series.points, index, markers_on_line);
      break;
    case Mark::scatter:
      draw_whiskers(canvas, area, series.points);
      draw_markers(canvas, area, series.points, index, std::max<std::size_t>(series.points.size(), 2));
      break;
    case Mark::step:
      draw_path(canvas, area, series.points, index, true);
      draw_markers(canvas, area, series.points, index, markers_on_line / 4);
      break;
    case Mark::strip: draw_strip(canvas, area, series.points); break;
  }
  canvas.close();
}

}  // namespace gpubench::chart
