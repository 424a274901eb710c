#include <algorithm>

#include "harness/chart/drawing.h"
#include "harness/chart/label.h"
#include "harness/chart/legend.h"
#include "harness/chart/rows.h"
#include "harness/chart/style.h"

namespace gpubench::chart {
namespace {

constexpr double bar_height = 13.0;
constexpr double bar_gap = 9.0;
constexpr double whisker_room = 1.25;  // times the longest bar: how far an interval widens the axis

bool has_interval(const Axis& axis, const Bar& bar) {
  return bar.low && bar.high && *bar.low <= *bar.high && drawable(axis, *bar.low) && drawable(axis, *bar.high);
}

bool shows(const Axis& axis, const Bar& bar) { return drawable(axis, bar.value) && bar.value >= 0.0; }

// A logarithm has no zero: where the axis begins is then given.
Axis from_zero(Axis axis) {
  if (axis.scale == Scale::log10 && axis.low && drawable(axis, *axis.low)) return axis;
  axis.scale = Scale::linear;
  axis.low = 0.0;
  return axis;
}

void draw_bar(Canvas& canvas, const AxisScale& scale, const Bar& bar, double y) {
  const double start = across(scale, scale.low());
  const auto end = [&](double value) { return std::clamp(across(scale, value), start, rows_right); };
  const std::string note = cut(bar.note, 300);
  if (bar.limit && drawable(scale.axis(), *bar.limit)) {
    canvas.shape(
        "rect",
        {{"class", "c-limit"}, {"x", start}, {"y", y}, {"width", end(*bar.limit) - start}, {"height", bar_height}});
  }
  canvas.shape("rect",
               {{"class", bar.doubtful ? "c-doubtful" : "c-bar"},
                {"stroke", series_colour(0)},
                {"fill", series_colour(0)},
                {"x", start},
                {"y", y + 2.0},
                {"width", end(bar.value) - start},
                {"height", bar_height - 4.0}},
               note);
  if (!has_interval(scale.axis(), bar)) return;
  const double middle = y + bar_height / 2.0;
  draw_row_whisker(canvas, across(scale, *bar.low), across(scale, *bar.high), middle);
}

double draw_group(Canvas& canvas, const AxisScale& scale, const BarGroup& group, double y, std::vector<Span>& marks) {
  if (!group.title.empty()) {
    y += line_height + 4.0;
    canvas.text(4.0, y - 4.0, shortened(group.title, chart_width - 8.0, text_size * 1.06), "c-bold");
  }
  for (const Bar& bar : group.bars) {
    y = draw_row_words(canvas, y, bar.label, bar.text);
    draw_bar(canvas, scale, bar, y);
    marks.push_back({y - 1.0, y + bar_height + 1.0});
    y += bar_height + bar_gap;
  }
  return y;
}

}  // namespace

std::string svg(const BarChart& chart, const std::string& id, Placement placement) {
  Drawing drawing(chart.title, chart.description, id, placement);
  const Axis axis = from_zero(chart.value);
  std::vector<BarGroup> groups = chart.groups;
  Extent extent;
  for (BarGroup& group : groups) {
    std::erase_if(group.bars, [&](const Bar& bar) { return !shows(axis, bar); });
    for (const Bar& bar : group.bars) {
      extent.include(bar.value);
      if (bar.limit && drawable(axis, *bar.limit)) extent.include(*bar.limit);
    }
  }
  // An interval that would press all bars together ends in an arrow.
  const double widest = whisker_room * extent.high.value_or(0.0);
  bool doubtful = false;
  for (const BarGroup& group : groups) {
    for (const Bar& bar : group.bars) {
      doubtful = doubtful || bar.doubtful;
      if (has_interval(axis, bar)) extent.include(std::min(*bar.high, widest));
    }
  }
  std::erase_if(groups, [](const BarGroup& group) { return group.bars.empty(); });
  if (groups.empty()) return "";
  const AxisScale scale(axis, extent, Ends::data);

  Canvas rows;
  std::vector<Span> marks;
  double y = drawing.top();
  for (const BarGroup& group : groups) y = draw_group(rows, scale, group, y, marks);
  double end = draw_value_axis(drawing.canvas(), scale, marks, y);
  drawing.canvas().append(rows);
  if (doubtful) end = draw_doubtful_key(drawing.canvas(), end);
  return drawing.finished(end);
}

}  // namespace gpubench::chart
