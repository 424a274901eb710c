#include "harness/page/chart/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/core/text/quantity.h"
#include "harness/page/chart/canvas.h"
#include "harness/page/chart/style.h"

namespace gpubench::chart {

std::vector<std::size_t> kept(const std::vector<double>& values, std::size_t most) {
  most = std::max<std::size_t>(most, 4);
  std::vector<std::size_t> places;
  const std::size_t count = values.size();
  if (count <= most) {
    for (std::size_t i = 0; i < count; ++i) places.push_back(i);
    return places;
  }
  const std::size_t stretches = (most - 2) / 2;
  const auto value = [&](std::size_t i) { return values[i]; };
  places.push_back(0);
  for (std::size_t s = 0; s < stretches; ++s) {
    const std::size_t first = 1 + s * (count - 2) / stretches;
    const std::size_t end = 1 + (s + 1) * (count - 2) / stretches;
    std::size_t lowest = first;
    std::size_t highest = first;
    for (std::size_t i = first; i < end; ++i) {
      if (value(i) < value(lowest)) lowest = i;
      if (value(i) > value(highest)) highest = i;
    }
    places.push_back(std::min(lowest, highest));
    if (lowest != highest) places.push_back(std::max(lowest, highest));
  }
  places.push_back(count - 1);
  return places;
}

std::size_t thin(std::vector<Series>& series, std::size_t most) {
  std::size_t total = 0;
  for (const Series& s : series) total += s.points.size();
  if (total <= most) return total;
  for (Series& s : series) {
    std::vector<double> values;
    for (const Point& point : s.points) values.push_back(point.y);
    const double share = static_cast<double>(s.points.size()) / static_cast<double>(total);
    std::vector<Point> points;
    for (const std::size_t place : kept(values, static_cast<std::size_t>(share * static_cast<double>(most))))
      points.push_back(std::move(s.points[place]));
    s.points = std::move(points);
  }
  return total;
}

std::string thinned_sentence(std::size_t points) {
  return fmt::format("Of {} points about {} are drawn; the highest and lowest of each stretch are among them.",
                     format_count(static_cast<std::int64_t>(points)), format_count(max_points));
}

namespace {

constexpr double plot_height = 230.0;

// Sorted by x for lines; without points that cannot be drawn or lie beyond a given end of the x axis.
std::vector<Series> drawable_series(const PlotChart& chart) {
  std::vector<Series> found = chart.series;
  for (Series& series : found) {
    std::erase_if(series.points, [&](const Point& point) {
      return !drawable(chart.x, point.x) || !drawable(chart.y, point.y) || (chart.x.low && point.x < *chart.x.low) ||
             (chart.x.high && point.x > *chart.x.high);
    });
    if (series.mark == Mark::line)
      std::stable_sort(series.points.begin(), series.points.end(),
                       [](const Point& a, const Point& b) { return a.x < b.x; });
  }
  return found;
}

AxisScale x_scale(const PlotChart& chart, const std::vector<Series>& series) {
  Extent extent;
  for (const Series& s : series)
    for (const Point& point : s.points) extent.include(point.x);
  return {chart.x, extent, Ends::data};
}

// The extent to which intervals may widen an axis whose data span `data`.
Extent interval_room(const Axis& axis, const Extent& data) {
  if (!data.low) return data;
  if (axis.scale != Scale::linear) return {*data.low / 2.0, *data.high * 2.0};
  const double room = 0.25 * std::max(*data.high - *data.low, std::fabs(*data.high));
  return {*data.low - room, *data.high + room};
}

AxisScale y_scale(const PlotChart& chart, const std::vector<Series>& series, const AxisScale& x) {
  Extent extent;
  const auto include = [&](double y) {
    if (drawable(chart.y, y)) extent.include(y);
  };
  for (const Series& s : series) {
    for (const Point& point : s.points) include(point.y);
  }
  for (const Guide& guide : chart.guides)
    for (const Point& point : clipped(guide, x, chart.y)) include(point.y);
  // Intervals widen the axis to a limit and end in an arrow beyond it: one bad case would flatten all others.
  const Extent room = interval_room(chart.y, extent);
  for (const Series& s : series) {
    for (const Point& point : s.points) {
      if (point.low) include(std::max(*point.low, room.low.value_or(point.y)));
      if (point.high) include(std::min(*point.high, room.high.value_or(point.y)));
    }
  }
  return {chart.y, extent, Ends::nice};
}

std::vector<Tick> y_ticks(const AxisScale& y) {
  return ticks(y, 7, [](std::span<const Tick>) { return true; });
}

void draw_frame(Canvas& canvas, const PlotArea& area, const std::vector<Tick>& rows) {
  for (const Tick& tick : rows) {
    const double y = area.at_y(tick.value);
    canvas.line(area.left, y, area.right, y, "c-grid");
    canvas.text(area.left - 6.0, y + 5.0, tick.label, "c-muted", Anchor::end);
  }
  for (const auto& [tick, label_middle] : ticks_below(area.x, [&](double value) { return area.at_x(value); })) {
    const double x = area.at_x(tick.value);
    canvas.line(x, area.top, x, area.bottom, "c-grid");
    canvas.text(label_middle, area.bottom + 17.0, tick.label, "c-muted", Anchor::middle);
  }
  PathData corner;
  corner.move(area.left, area.top).line(area.left, area.bottom).line(area.right, area.bottom);
  canvas.shape("path", {{"class", "c-axis"}, {"d", corner.text()}});
}

std::vector<LegendEntry> legend_of(const std::vector<Series>& series) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < series.size(); ++i) {
    if (!series[i].points.empty() && !series[i].name.empty())
      entries.push_back({i, series[i].name, series[i].mark == Mark::line});
  }
  return entries;
}

bool any_unreliable(const std::vector<Series>& series) {
  return std::any_of(series.begin(), series.end(), [](const Series& s) {
    return std::any_of(s.points.begin(), s.points.end(), [](const Point& point) { return point.doubtful; });
  });
}

}  // namespace

std::string svg(const PlotChart& chart, const std::string& id, Placement placement) {
  Drawing drawing(chart.title, chart.description, id, placement);
  std::vector<Series> series = drawable_series(chart);
  const std::size_t points = thin(series);
  if (points == 0) return "";
  if (points > max_points) drawing.add_to_description(thinned_sentence(points));
  Canvas& canvas = drawing.canvas();
  double top = drawing.top();
  const AxisScale x = x_scale(chart, series);
  const AxisScale along_y = y_scale(chart, series, x);
  const std::string y_title = shortened(axis_title(along_y), chart_width - 8.0, text_size);
  if (!y_title.empty()) {
    canvas.text(4.0, top + 10.0, y_title, "c-text");
    top += line_height;
  }
  PlotArea area{x, along_y, 0.0, chart_width - 10.0, top + 2.0, top + 2.0 + plot_height};
  if (!chart.guides.empty()) area.headroom = 10.0;
  const std::vector<Tick> rows = y_ticks(area.y);
  for (const Tick& tick : rows) area.left = std::max(area.left, text_width(tick.label, text_size) + 12.0);

  draw_frame(canvas, area, rows);
  canvas.open("clipPath", {{"id", id + "-clip"}});
  canvas.shape(
      "rect",
      {{"x", area.left}, {"y", area.top}, {"width", area.right - area.left}, {"height", area.bottom - area.top}});
  canvas.close();
  canvas.open("g", {{"clip-path", "url(#" + id + "-clip)"}});
  draw_guides(canvas, area, chart.guides);
  for (std::size_t i = 0; i < series.size(); ++i)
    if (!series[i].points.empty()) draw_series(canvas, area, series[i], i);
  canvas.close();
  draw_guide_labels(canvas, area, chart.guides);

  double y = area.bottom + 20.0;
  const std::string below = shortened(axis_title(x), chart_width - 8.0, text_size);
  if (!below.empty()) {
    y += line_height;
    canvas.text((area.left + area.right) / 2.0, y - 2.0, below, "c-text", Anchor::middle);
  }
  y = draw_legend(canvas, legend_of(series), y);
  if (any_unreliable(series)) y = draw_unreliable_key(canvas, y);
  return drawing.finished(y + 6.0);
}

}  // namespace gpubench::chart
