#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "harness/page/chart/canvas.h"
#include "harness/page/chart/rows.h"
#include "harness/page/chart/style.h"

namespace gpubench::chart {
namespace {

constexpr double bar_height = 13.0;
constexpr double bar_gap = 9.0;
constexpr double whisker_room = 1.25;  // limit of an interval on the axis, as a multiple of the longest bar

bool has_interval(const Axis& axis, const Bar& bar) {
  return bar.low && bar.high && *bar.low <= *bar.high && drawable(axis, *bar.low) && drawable(axis, *bar.high);
}

bool shows(const Axis& axis, const Bar& bar) { return drawable(axis, bar.value) && bar.value >= 0.0; }

// A logarithmic axis has no zero and keeps its low end.
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
    y = draw_row_text(canvas, y, bar.label, bar.text);
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
  // An interval that would squeeze all bars ends in an arrow.
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
  if (doubtful) end = draw_unreliable_key(drawing.canvas(), end);
  return drawing.finished(end);
}

namespace {

constexpr double stack_height = 26.0;
constexpr double smallest_share = 0.01;
// Okabe and Ito's, with yellow, since each is next to its number and none is a thin line. Tol's indigo replaces black,
// which is invisible on dark paper. One colour per name, so that no two share one.
constexpr std::string_view colours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00",
                                        "#56b4e9", "#f0e442", "#cc79a7", "#332288"};
constexpr std::string_view other = "other";
constexpr std::string_view left_over = "left over";
constexpr std::string_view other_colour = "#8a929b";
constexpr std::string_view left_over_colour = "#cdd3d9";

bool is_plain(const std::string& name) { return name != other && name != left_over; }

std::string percent_text(double share) { return fmt::format("{:.{}f}%", 100.0 * share, share < 0.0995 ? 1 : 0); }

bool counts(const Part& part) { return std::isfinite(part.value) && part.value > 0.0; }

std::set<std::string> largest_names(const std::vector<StackedBar>& bars) {
  std::map<std::string, double> values;
  for (const StackedBar& bar : bars) {
    for (const Part& part : bar.parts) {
      if (counts(part) && part.value >= smallest_share && is_plain(part.name)) values[part.name] += part.value;
    }
  }
  std::vector<std::pair<std::string, double>> names(values.begin(), values.end());
  std::stable_sort(names.begin(), names.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::set<std::string> largest;
  for (std::size_t i = 0; i < std::min(names.size(), std::size(colours)); ++i) largest.insert(names[i].first);
  return largest;
}

// Adds up parts that are too small or have no colour; they come last.
std::vector<Part> merged(const StackedBar& bar, const std::set<std::string>& named) {
  std::vector<Part> parts;
  std::vector<Part> rest;
  Part together{std::string(other), 0.0, ""};
  int count = 0;
  for (const Part& part : bar.parts) {
    if (!counts(part)) continue;
    if (part.name == left_over) {
      rest.push_back(part);
    } else if (part.value >= smallest_share && named.count(part.name) > 0) {
      parts.push_back(part);
    } else {
      together.value += part.value;
      ++count;
    }
  }
  together.note = fmt::format("{} in {} smaller parts", percent_text(together.value), count);
  if (count > 0) parts.push_back(together);
  parts.insert(parts.end(), rest.begin(), rest.end());
  return parts;
}

// Names in order of appearance; number and colour are the same in every bar.
class Names {
 public:
  std::size_t place_of(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    names_.push_back(name);
    return names_.size() - 1;
  }
  std::string number_of(const Part& part) { return is_plain(part.name) ? std::to_string(place_of(part.name) + 1) : ""; }
  std::string_view colour_of(const Part& part) {
    if (part.name == left_over) return left_over_colour;
    return part.name == other ? other_colour : colours[place_of(part.name) % std::size(colours)];
  }

 private:
  std::vector<std::string> names_;
};

void draw_parts(Canvas& canvas, const std::vector<Part>& parts, Names& names, double y) {
  double whole = 0.0;
  for (const Part& part : parts) whole += part.value;
  const double scale = (rows_right - rows_left) / std::max(whole, 1.0);
  double x = rows_left;
  for (const Part& part : parts) {
    const std::string_view colour = names.colour_of(part);
    const double width = part.value * scale;
    canvas.shape(
        "rect", {{"class", "c-part"}, {"fill", colour}, {"x", x}, {"y", y}, {"width", width}, {"height", stack_height}},
        cut(part.note.empty() ? part.name + ": " + percent_text(part.value) : part.note, 300));
    const std::string text = names.number_of(part);
    if (!text.empty() && text_width(text, text_size) + 4.0 <= width)
      canvas.words("text", text,
                   {{"fill", text_on(colour)}, {"x", x + width / 2.0}, {"y", y + 18.0}, {"text-anchor", "middle"}});
    x += width;
  }
}

double draw_names(Canvas& canvas, const std::vector<Part>& parts, Names& names, double y) {
  double x = rows_left;
  y += line_height;
  for (const Part& part : parts) {
    const std::string tail = " " + percent_text(part.value);
    const std::string number = names.number_of(part);
    const double swatch = text_width(number.empty() ? "1" : number, text_size) + 8.0;
    const double most = rows_right - rows_left - swatch - 6.0 - text_width(tail, text_size);
    const std::string text = shortened(part.name, most, text_size) + tail;
    const double width = swatch + 6.0 + text_width(text, text_size);
    if (x > rows_left && x + width > rows_right) {
      x = rows_left;
      y += line_height + 3.0;
    }
    const std::string_view colour = names.colour_of(part);
    canvas.shape("rect", {{"fill", colour}, {"x", x}, {"y", y - 13.0}, {"width", swatch}, {"height", 17.0}});
    if (!number.empty())
      canvas.words("text", number,
                   {{"fill", text_on(colour)}, {"x", x + swatch / 2.0}, {"y", y}, {"text-anchor", "middle"}});
    canvas.text(x + swatch + 6.0, y, text, "c-text");
    x += width + 14.0;
  }
  return y;
}

}  // namespace

std::string svg(const StackChart& chart, const std::string& id, Placement placement) {
  Drawing drawing(chart.title, chart.description, id, placement);
  Names names;
  const std::set<std::string> named = largest_names(chart.bars);
  double y = drawing.top();
  bool drawn = false;
  for (const StackedBar& bar : chart.bars) {
    const std::vector<Part> parts = merged(bar, named);
    if (parts.empty()) continue;
    drawn = true;
    if (!bar.label.empty()) y = draw_row_text(drawing.canvas(), y, bar.label, "", "c-bold");
    draw_parts(drawing.canvas(), parts, names, y);
    y = draw_names(drawing.canvas(), parts, names, y + stack_height + 4.0) + 14.0;
  }
  return drawn ? drawing.finished(y) : "";
}

}  // namespace gpubench::chart
