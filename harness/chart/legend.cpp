#include "harness/chart/legend.h"

#include <string>

#include "harness/chart/style.h"

namespace gpubench::chart {
namespace {

struct Shape {
  double dx;  // where the outline begins, from the middle
  double dy;
  std::string_view outline;  // relative path data
};

// All of about the same area, so that none looks more important.
constexpr Shape shapes[marker_shapes] = {
    {-4.2, 0, "a4.2 4.2 0 1 0 8.4 0a4.2 4.2 0 1 0-8.4 0z"},
    {-3.8, -3.8, "h7.6v7.6h-7.6z"},
    {0, -5, "l4.8 8.4h-9.6z"},
    {0, -5.4, "l5.4 5.4-5.4 5.4-5.4-5.4z"},
    {0, 5, "l4.8-8.4h-9.6z"},
    {-1.7, -5, "h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z"},
    {-2.4, -4.2, "h4.8l2.4 4.2-2.4 4.2h-4.8l-2.4-4.2z"},
    {0, -2.4, "l2.5-2.5 2.4 2.4-2.5 2.5 2.5 2.5-2.4 2.4-2.5-2.5-2.5 2.5-2.4-2.4 2.5-2.5-2.5-2.5 2.4-2.4z"},
};

}  // namespace

void draw_marker(Canvas& canvas, std::size_t series, double x, double y, std::string_view note, bool doubtful) {
  const Shape& shape = shapes[series % marker_shapes];
  const std::string start = PathData().move(x + shape.dx, y + shape.dy).text();
  canvas.shape("path", {{"class", doubtful ? "c-doubtful" : "c-mark"}, {"d", start + std::string(shape.outline)}},
               note);
}

void draw_diamond(Canvas& canvas, double left, double middle, double right, double y, std::string_view note) {
  const double least = 5.4;  // wide enough to be seen where the interval is narrow
  const double first = left < middle - least ? left : middle - least;
  const double last = right > middle + least ? right : middle + least;
  PathData path;
  path.move(first, y).line(middle, y - least).line(last, y).line(middle, y + least).close();
  canvas.shape("path", {{"class", "c-mark"}, {"d", path.text()}}, note);
}

namespace {

constexpr double swatch = 30.0;
constexpr double gap = 16.0;
constexpr double legend_margin = 8.0;

}  // namespace

double draw_legend(Canvas& canvas, const std::vector<LegendEntry>& entries, double y) {
  double x = legend_margin;
  y += line_height;
  for (const LegendEntry& entry : entries) {
    const std::string name = shortened(entry.name, chart_width - 2.0 * legend_margin - swatch - 6.0, text_size);
    const double width = swatch + 6.0 + text_width(name, text_size);
    if (x > legend_margin && x + width > chart_width - legend_margin) {
      x = legend_margin;
      y += line_height + 2.0;
    }
    canvas.open("g", {{"class", "c-key"},
                      {"data-series", static_cast<int>(entry.series)},
                      {"fill", series_colour(entry.series)},
                      {"stroke", series_colour(entry.series)}});
    if (entry.line) {
      canvas.shape("path", {{"class", "c-line"},
                            {"stroke-dasharray", series_dash(entry.series)},
                            {"d", PathData().move(x, y - 5.0).line(x + swatch, y - 5.0).text()}});
    }
    draw_marker(canvas, entry.series, x + swatch / 2.0, y - 5.0);
    // Only the sample has the group's colour, not the text.
    canvas.words("text", name, {{"class", "c-text"}, {"stroke", "none"}, {"x", x + swatch + 6.0}, {"y", y}});
    canvas.close();
    x += width + gap;
  }
  return entries.empty() ? y - line_height : y + 4.0;
}

double draw_doubtful_key(Canvas& canvas, double y) {
  y += line_height;
  canvas.open("g", {{"stroke", "currentColor"}});
  draw_marker(canvas, 0, legend_margin + swatch / 2.0, y - 5.0, {}, true);
  canvas.close();
  canvas.text(legend_margin + swatch + 6.0, y, "hollow: the timing is unreliable", "c-muted");
  return y + 4.0;
}

}  // namespace gpubench::chart
