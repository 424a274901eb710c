#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "harness/chart/drawing.h"
#include "harness/chart/label.h"
#include "harness/chart/marker.h"
#include "harness/chart/rows.h"
#include "harness/chart/style.h"

namespace gpubench::chart {
namespace {

constexpr double mark_height = 14.0;
constexpr double row_gap = 6.0;

bool shows(const Axis& axis, const ForestRow& row) {
  return drawable(axis, row.ratio) && drawable(axis, row.low) && drawable(axis, row.high) && row.low <= row.high;
}

// So many decimals that the interval's width shows, at least two: 1.02x [0.97, 1.06]; 1.0012x [1.0008, 1.0016].
std::string words_of(const ForestRow& row) {
  int decimals = 2;
  for (double width = row.high - row.low; width > 0.0 && width < 0.02 && decimals < 4; width *= 10.0) ++decimals;
  const std::string numbers =
      fmt::format("{:.{}f}x [{:.{}f}, {:.{}f}]", row.ratio, decimals, row.low, decimals, row.high, decimals);
  return row.word.empty() ? numbers : numbers + " " + row.word;
}

// Faster, slower and neither differ in shape too.
std::size_t series_of(const ForestRow& row) {
  if (row.word == "FASTER") return 2;                           // a triangle upwards, green
  if (row.word == "SLOWER") return 4;                           // downwards, orange
  return row.word == "SAME" ? std::size_t{0} : std::size_t{1};  // a circle; what is not sure: a square
}

void draw_row(Canvas& canvas, const AxisScale& scale, const ForestRow& row, double y) {
  const double middle = y + mark_height / 2.0;
  const std::string note = cut(row.label + ": " + words_of(row), 300);
  const std::size_t series = series_of(row);
  canvas.open("g", {{"fill", row.summary ? "currentColor" : series_colour(series)}});
  if (row.summary) {
    draw_diamond(canvas, std::max(across(scale, row.low), rows_left), across(scale, row.ratio),
                 std::min(across(scale, row.high), rows_right), middle, note);
  } else {
    draw_row_whisker(canvas, across(scale, row.low), across(scale, row.high), middle);
    draw_marker(canvas, series, across(scale, row.ratio), middle, note);
  }
  canvas.close();
}

}  // namespace

std::string svg(const ForestChart& chart, const std::string& id, Placement placement) {
  Drawing drawing(chart.title, chart.description, id, placement);
  const Axis axis{.title = chart.axis_title, .scale = Scale::log10, .labels = TickLabels::plain, .unit = ""};
  std::vector<ForestRow> shown = chart.rows;
  std::erase_if(shown, [&](const ForestRow& row) { return !shows(axis, row); });
  if (shown.empty()) return "";
  // As far to the left as to the right of 1: twice as fast looks as far away as half as fast.
  double farthest = 1.01;
  for (const ForestRow& row : shown) farthest = std::max({farthest, row.ratio, 1.0 / row.ratio});
  // Intervals up to twice as far as the ratios, or to a factor of two, are drawn whole; others end in an arrow.
  const double most = std::max(farthest * farthest, 2.0);
  for (const ForestRow& row : shown) farthest = std::max(farthest, std::min(most, std::max(row.high, 1.0 / row.low)));
  farthest = std::pow(farthest, 1.05);
  const AxisScale scale(axis, {1.0 / farthest, farthest}, Ends::data);

  Canvas rows;
  std::vector<Span> marks;
  double y = drawing.top();
  for (const ForestRow& row : shown) {
    y = draw_row_words(rows, y, row.label, words_of(row), row.summary ? "c-bold" : "c-text");
    draw_row(rows, scale, row, y);
    marks.push_back({y, y + mark_height});
    y += mark_height + row_gap;
  }
  Canvas& canvas = drawing.canvas();
  const double end = draw_value_axis(canvas, scale, marks, y);
  PathData one;
  for (const Span& row : marks) one.move(across(scale, 1.0), row.top - 1.0).line(across(scale, 1.0), row.bottom + 2.0);
  canvas.shape("path", {{"class", "c-axis"}, {"d", one.text()}});
  canvas.append(rows);
  return drawing.finished(end);
}

}  // namespace gpubench::chart
