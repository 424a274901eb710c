#include <algorithm>
#include <cmath>

#include "harness/chart/label.h"
#include "harness/chart/plot_area.h"
#include "harness/chart/style.h"
#include "harness/report/visible_text.h"

namespace gpubench::chart {
namespace {

// Straight in the drawing: on a logarithmic axis, in the logarithm.
double mixed(Scale scale, double from, double to, double part) {
  if (scale == Scale::linear) return from + part * (to - from);
  return from * std::pow(to / from, part);
}

double part_at(const AxisScale& x, double from, double to, double at) {
  return (x.position(at) - x.position(from)) / (x.position(to) - x.position(from));
}

struct EndLabel {
  std::string text;
  double y = 0.0;  // baseline
};

// Over the line, from where it is two thirds up, away from its upper end. False where the label has no room there.
bool draw_beside(Canvas& canvas, const PlotArea& area, const std::vector<Point>& points, const std::string& text) {
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

void draw_bands(Canvas& canvas, const PlotArea& area, const std::vector<Band>& bands) {
  for (const Band& band : bands) {
    if (!drawable(area.x.axis(), band.from) || !drawable(area.x.axis(), band.to)) continue;
    const double from = std::max(area.at_x(band.from), area.left);
    const double to = std::min(area.at_x(band.to), area.right);
    if (!(from < to)) continue;
    canvas.shape(
        "rect",
        {{"class", "c-stripe"}, {"x", from}, {"y", area.top}, {"width", to - from}, {"height", area.bottom - area.top}},
        cut(band.label, 200));
    const std::string label = shortened(band.label, to - from - 6.0, text_size);
    if (columns(label) > 3) canvas.text(from + 3.0, area.top + 14.0, label, "c-muted");
  }
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
    const double first = area.at_y(points.front().y);
    const double last = area.at_y(points.back().y);
    if (std::fabs(first - last) > 2.0 * text_size && draw_beside(canvas, area, points, text)) continue;
    labels.push_back({text, std::clamp(last, area.top, area.bottom) - 5.0});
  }
  std::stable_sort(labels.begin(), labels.end(), [](const EndLabel& a, const EndLabel& b) { return a.y < b.y; });
  // Downwards until none touches the one above, then upwards from the bottom for what that pushed out.
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
