#include "harness/page/chart/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "harness/page/chart/canvas.h"
#include "harness/page/chart/style.h"

namespace gpubench::chart {
namespace {

constexpr double half_a_unit = 0.5;  // an end less than this outside is drawn at the edge

constexpr double bold_width = 1.12;  // width of bold letters relative to others

}  // namespace

double across(const AxisScale& scale, double value) {
  return rows_left + scale.position(value) * (rows_right - rows_left);
}

double draw_row_text(Canvas& canvas, double y, const std::string& label, const std::string& text, const char* style) {
  const double width = rows_right - rows_left;
  const double size = std::string_view(style) == "c-bold" ? bold_width * text_size : text_size;
  const std::string right = shortened(text, 0.6 * width, size);
  const double left_width = width - (right.empty() ? 0.0 : text_width(right, size) + 12.0);
  std::vector<std::string> lines{shortened(label, left_width, size)};
  // Two lines if one would cut too much; then the first has the whole width.
  if (text_width(label, size) > left_width) {
    lines = wrapped(label, width, size, 2);
    if (lines.size() == 1) lines.emplace_back();
    lines.back() = shortened(lines.back(), left_width, size);
  }
  for (const std::string& line : lines) {
    y += line_height;
    if (!line.empty()) canvas.text(rows_left, y - 4.0, line, style);
  }
  if (!right.empty()) canvas.text(rows_right, y - 4.0, right, style, Anchor::end);
  return y;
}

void draw_row_whisker(Canvas& canvas, double left, double right, double y) {
  const double first = std::clamp(left, rows_left, rows_right);
  const double last = std::clamp(right, rows_left, rows_right);
  PathData whisker;
  whisker.move(first, y).line(last, y);
  // A bar for an end within the drawing, an arrow beyond.
  const auto end = [&](double x, double beyond) {
    if (beyond == 0.0) {
      whisker.move(x, y - 4.0).line(x, y + 4.0);
    } else {
      whisker.move(x - 5.0 * beyond, y - 4.0).line(x, y).line(x - 5.0 * beyond, y + 4.0);
    }
  };
  end(first, left < rows_left - half_a_unit ? -1.0 : 0.0);
  end(last, right > rows_right + half_a_unit ? 1.0 : 0.0);
  canvas.shape("path", {{"class", "c-whisker"}, {"d", whisker.text()}});
}

double draw_value_axis(Canvas& canvas, const AxisScale& scale, const std::vector<Span>& marks, double bottom) {
  for (const auto& [tick, label_middle] : ticks_below(scale, [&](double value) { return across(scale, value); })) {
    const double x = across(scale, tick.value);
    PathData line;
    for (const Span& row : marks) line.move(x, row.top).line(x, row.bottom);
    canvas.shape("path", {{"class", "c-grid"}, {"d", line.move(x, bottom).line(x, bottom + 3.0).text()}});
    canvas.text(label_middle, bottom + 16.0, tick.label, "c-muted", Anchor::middle);
  }
  canvas.line(rows_left, bottom, rows_right, bottom, "c-axis");
  const std::string title = shortened(axis_title(scale), chart_width - 8.0, text_size);
  if (title.empty()) return bottom + 22.0;
  canvas.text(chart_width / 2.0, bottom + 34.0, title, "c-text", Anchor::middle);
  return bottom + 40.0;
}

namespace {

constexpr double mark_height = 14.0;
constexpr double row_gap = 6.0;

bool shows(const Axis& axis, const ForestRow& row) {
  return drawable(axis, row.ratio) && drawable(axis, row.low) && drawable(axis, row.high) && row.low <= row.high;
}

// Enough decimals for the interval's width, at least two: 1.02x [0.97, 1.06]; 1.0012x [1.0008, 1.0016].
std::string words_of(const ForestRow& row) {
  int decimals = 2;
  for (double width = row.high - row.low; width > 0.0 && width < 0.02 && decimals < 4; width *= 10.0) ++decimals;
  const std::string numbers =
      fmt::format("{:.{}f}x [{:.{}f}, {:.{}f}]", row.ratio, decimals, row.low, decimals, row.high, decimals);
  return row.word.empty() ? numbers : numbers + " " + row.word;
}

// Shapes differ, too.
std::size_t series_of(const ForestRow& row) {
  if (row.word == "FASTER") return 2;                           // triangle up, green
  if (row.word == "SLOWER") return 4;                           // triangle down, orange
  return row.word == "SAME" ? std::size_t{0} : std::size_t{1};  // circle; uncertain: square
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
  // Symmetric about 1: twice as fast is as far as half as fast.
  double farthest = 1.01;
  for (const ForestRow& row : shown) farthest = std::max({farthest, row.ratio, 1.0 / row.ratio});
  // Draws intervals whole up to twice the distance of the ratios, at least a factor of two; others end in an arrow.
  const double most = std::max(farthest * farthest, 2.0);
  for (const ForestRow& row : shown) farthest = std::max(farthest, std::min(most, std::max(row.high, 1.0 / row.low)));
  farthest = std::pow(farthest, 1.05);
  const AxisScale scale(axis, {1.0 / farthest, farthest}, Ends::data);

  Canvas rows;
  std::vector<Span> marks;
  double y = drawing.top();
  for (const ForestRow& row : shown) {
    y = draw_row_text(rows, y, row.label, words_of(row), row.summary ? "c-bold" : "c-text");
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
