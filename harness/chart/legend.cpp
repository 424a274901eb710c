#include "harness/chart/legend.h"

#include "harness/chart/label.h"
#include "harness/chart/marker.h"
#include "harness/chart/style.h"

namespace gpubench::chart {
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
    // Of the group's colour is its sample alone.
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
