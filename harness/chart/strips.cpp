#include <algorithm>
#include <cmath>

#include "harness/chart/drawing.h"
#include "harness/chart/label.h"
#include "harness/chart/rows.h"
#include "harness/chart/style.h"
#include "harness/chart/thin.h"

namespace gpubench::chart {
namespace {

constexpr double strip_height = 22.0;
constexpr double row_gap = 5.0;

// Base-3 van der Corput sequence, 0 to 1: neighbours stand apart, and the same each time.
double spread(unsigned index) {
  double value = 0.0;
  for (double digit = 1.0 / 3.0; index != 0; index /= 3U, digit /= 3.0) value += digit * (index % 3U);
  return value;
}

void draw_strip(Canvas& canvas, const AxisScale& scale, const Strip& strip, double y) {
  const double middle = y + strip_height / 2.0;
  canvas.line(rows_left, middle, rows_right, middle, "c-grid");
  canvas.open("g", {{"fill", series_colour(0)}});
  unsigned drawn = 0;
  for (const double value : strip.values) {
    const double aside = (strip_height - 6.0) * (spread(++drawn) - 0.5);
    canvas.shape("circle", {{"class", "c-dot"}, {"cx", across(scale, value)}, {"cy", middle + aside}, {"r", 2.6}});
  }
  canvas.close();
  if (strip.middle && drawable(scale.axis(), *strip.middle)) {
    const double x = across(scale, *strip.middle);
    canvas.shape("path",
                 {{"class", "c-whisker"}, {"d", PathData().move(x, y + 1.0).line(x, y + strip_height - 1.0).text()}},
                 cut(strip.note, 300));
  }
}

}  // namespace

std::string svg(const StripChart& chart, const std::string& id, Placement placement) {
  Drawing drawing(chart.title, chart.description, id, placement);
  std::vector<Strip> strips = chart.strips;
  std::size_t total = 0;
  for (Strip& strip : strips) {
    std::erase_if(strip.values, [&](double value) { return !drawable(chart.value, value); });
    total += strip.values.size();
  }
  std::erase_if(strips, [](const Strip& strip) { return strip.values.empty(); });
  if (strips.empty()) return "";
  Extent extent;
  for (Strip& strip : strips) {
    if (total > most_points) {
      std::vector<double> few;
      for (const std::size_t place : kept(strip.values, most_points * strip.values.size() / total))
        few.push_back(strip.values[place]);
      strip.values = few;
    }
    for (const double value : strip.values) extent.include(value);
  }
  if (total > most_points) drawing.add_to_description(thinned_sentence(total));
  // Values far outside a given range are held to its ends: they show, and don't squeeze the rest.
  const AxisScale scale(chart.value, extent, Ends::data);
  for (Strip& strip : strips)
    for (double& value : strip.values) value = std::clamp(value, scale.low(), scale.high());

  Canvas rows;
  std::vector<Span> marks;
  double y = drawing.top();
  for (const Strip& strip : strips) {
    y = draw_row_words(rows, y, strip.label, strip.text);
    draw_strip(rows, scale, strip, y);
    marks.push_back({y, y + strip_height});
    y += strip_height + row_gap;
  }
  const double end = draw_value_axis(drawing.canvas(), scale, marks, y);
  drawing.canvas().append(rows);
  return drawing.finished(end);
}

}  // namespace gpubench::chart
