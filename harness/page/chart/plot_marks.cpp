#include "harness/page/chart/plot.h"

#include <algorithm>
#include <cmath>

#include "harness/core/text/visible_text.h"
#include "harness/page/chart/style.h"

namespace gpubench::chart {
namespace {

constexpr std::size_t longest_note = 300;

// More markers hide the line.
constexpr std::size_t markers_on_line = 40;

bool has_interval(const PlotArea& area, const Point& point) {
  return point.low && point.high && *point.low <= *point.high && drawable(area.y.axis(), *point.low) &&
         drawable(area.y.axis(), *point.high);
}

void draw_path(Canvas& canvas, const PlotArea& area, const std::vector<Point>& points, std::size_t index) {
  PathData path;
  for (const Point& point : points) {
    const double x = area.at_x(point.x);
    if (path.empty()) {
      path.move(x, area.at_y(point.y));
      continue;
    }
    path.line(x, area.at_y(point.y));
  }
  canvas.shape("path", {{"class", "c-line"}, {"stroke-dasharray", series_dash(index)}, {"d", path.text()}});
}

// At the frame, for an interval that leaves the drawing.
void add_arrow(PathData& path, const PlotArea& area, double x, bool upward) {
  const double tip = upward ? area.top + 1.5 : area.bottom - 1.5;
  const double back = upward ? tip + 5.0 : tip - 5.0;
  path.move(x - 3.5, back).line(x, tip).line(x + 3.5, back);
}

bool below(const PlotArea& area, const Point& point) { return *point.low < area.y.low(); }
bool above(const PlotArea& area, const Point& point) { return *point.high > area.y.high(); }

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

// Markers at both ends, and others spread evenly.
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

}  // namespace

void draw_series(Canvas& canvas, const PlotArea& area, const Series& series, std::size_t index) {
  canvas.open("g", {{"class", "c-series"},
                    {"data-series", static_cast<int>(index)},
                    {"fill", series_colour(index)},
                    {"stroke", series_colour(index)}});
  if (series.mark == Mark::line) {
    draw_ranges(canvas, area, series.points);
    draw_path(canvas, area, series.points, index);
    draw_markers(canvas, area, series.points, index, markers_on_line);
  } else {
    draw_whiskers(canvas, area, series.points);
    draw_markers(canvas, area, series.points, index, std::max<std::size_t>(series.points.size(), 2));
  }
  canvas.close();
}

namespace {

// Interpolates as drawn: in the logarithm on a logarithmic axis.
double mixed(Scale scale, double from, double to, double part) {
  if (scale == Scale::linear) return from + part * (to - from);
  return from * std::pow(to / from, part);
}

double part_at(const AxisScale& x, double from, double to, double at) {
  return (x.position(at) - x.position(from)) / (x.position(to) - x.position(from));
}

struct EndLabel {
  std::string text;
  double y = 0.0;
};

// From two thirds of the way up a line that ends sloped. False without room.
bool draw_label_next_to(Canvas& canvas, const PlotArea& area, const std::vector<Point>& points,
                        const std::string& text) {
  const Point& first = points.front();
  const Point& last = points.back();
  const bool rising = area.at_y(last.y) < area.at_y(first.y);
  const Scale x_scale = area.x.axis().scale;
  const double value = mixed(x_scale, first.x, last.x, rising ? 0.66 : 0.34);
  for (std::size_t i = 1; i < points.size(); ++i) {
    if (!(points[i - 1].x <= value && value <= points[i].x)) continue;
    const double part = part_at(area.x, points[i - 1].x, points[i].x, value);
    const double x = area.at_x(value) + (rising ? -8.0 : 8.0);
    const double y = area.at_y(mixed(area.y.axis().scale, points[i - 1].y, points[i].y, part)) - 4.0;
    const double width = text_width(text, text_size);
    if (y < area.top + text_size || (rising ? x - width < area.left : x + width > area.right)) return false;
    canvas.text(x, y, text, "c-over", rising ? Anchor::end : Anchor::start);
    return true;
  }
  return false;
}

}  // namespace

std::vector<Point> clipped(const Guide& guide, const AxisScale& x, const Axis& y) {
  std::vector<Point> points;
  for (const Point& point : guide.points) {
    const bool horizontal = guide.points.size() == 1;
    if (drawable(y, point.y) && (horizontal || drawable(x.axis(), point.x))) points.push_back(point);
  }
  if (points.empty()) return {};
  if (guide.points.size() == 1) {
    const double level = points.front().y;
    points.resize(2);
    points[0].x = x.low();
    points[1].x = x.high();
    points[0].y = points[1].y = level;
    return points;
  }
  std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  std::vector<Point> inside;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const Point& to = points[i];
    if (i > 0) {
      const Point& from = points[i - 1];
      for (const double end : {x.low(), x.high()}) {
        if (!(from.x < end && end < to.x)) continue;
        Point cut_here = to;
        cut_here.x = end;
        cut_here.y = mixed(y.scale, from.y, to.y, part_at(x, from.x, to.x, end));
        inside.push_back(cut_here);
      }
    }
    if (to.x >= x.low() && to.x <= x.high()) inside.push_back(to);
  }
  return inside.size() < 2 ? std::vector<Point>() : inside;
}

void draw_guides(Canvas& canvas, const PlotArea& area, const std::vector<Guide>& guides) {
  for (const Guide& guide : guides) {
    const std::vector<Point> points = clipped(guide, area.x, area.y.axis());
    PathData path;
    for (const Point& point : points) {
      if (path.empty()) {
        path.move(area.at_x(point.x), area.at_y(point.y));
      } else {
        path.line(area.at_x(point.x), area.at_y(point.y));
      }
    }
    if (!path.empty()) canvas.shape("path", {{"class", "c-guide"}, {"d", path.text()}}, cut(guide.label, 200));
  }
}

void draw_guide_labels(Canvas& canvas, const PlotArea& area, const std::vector<Guide>& guides) {
  std::vector<EndLabel> labels;
  for (const Guide& guide : guides) {
    const std::vector<Point> points = clipped(guide, area.x, area.y.axis());
    if (points.empty() || guide.label.empty()) continue;
    const std::string text = shortened(guide.label, area.right - area.left - 12.0, text_size);
    const double before = area.at_y(points[points.size() - 2].y);
    const double last = area.at_y(points.back().y);
    if (std::fabs(before - last) > 2.0 * text_size && draw_label_next_to(canvas, area, points, text)) continue;
    labels.push_back({text, std::clamp(last, area.top, area.bottom) - 5.0});
  }
  std::stable_sort(labels.begin(), labels.end(), [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
  // Moves labels down until none touch, then up from the bottom edge.
  double least = area.top + text_size;
  for (EndLabel& label : labels) {
    label.y = std::max(label.y, least);
    least = label.y + text_size + 2.0;
  }
  double most = area.bottom - 4.0;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    label->y = std::min(label->y, most);
    most = label->y - text_size - 2.0;
  }
  for (const EndLabel& label : labels) canvas.text(area.right - 4.0, label.y, label.text, "c-over", Anchor::end);
}

}  // namespace gpubench::chart
