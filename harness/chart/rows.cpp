#include "harness/chart/rows.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "harness/chart/label.h"
#include "harness/chart/style.h"

namespace gpubench::chart {
namespace {

constexpr double half_a_unit = 0.5;  // what lies less than this outside ends at the edge

constexpr double bold_width = 1.12;  // of bold letters, as a multiple of others

}  // namespace

double across(const AxisScale& scale, double value) {
  return rows_left + scale.position(value) * (rows_right - rows_left);
}

double draw_row_words(Canvas& canvas, double y, const std::string& label, const std::string& text, const char* style) {
  const double width = rows_right - rows_left;
  const double size = std::string_view(style) == "c-bold" ? bold_width * text_size : text_size;
  const std::string right = shortened(text, 0.6 * width, size);
  const double left_width = width - (right.empty() ? 0.0 : text_width(right, size) + 12.0);
  std::vector<std::string> lines{shortened(label, left_width, size)};
  // Two lines where one says too little: then the whole width is the first one's.
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
  // An end within the drawing is a bar across, one beyond it an arrow that points there.
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

}  // namespace gpubench::chart
