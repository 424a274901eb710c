#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "harness/chart/drawing.h"
#include "harness/chart/label.h"
#include "harness/chart/rows.h"
#include "harness/chart/style.h"

namespace gpubench::chart {
namespace {

constexpr double stack_height = 26.0;
constexpr double smallest_share = 0.01;
// Okabe and Ito's, yellow too: here each stands beside its number, and none has to be seen as a line.
constexpr std::string_view colours[] = {"#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#f0e442", "#cc79a7"};
constexpr std::string_view other_colour = "#8a929b";

std::string percent_text(double share) { return fmt::format("{:.{}f}%", 100.0 * share, share < 0.0995 ? 1 : 0); }

// Parts that are too small to be seen, together, last.
std::vector<Part> merged(const StackedBar& bar) {
  std::vector<Part> parts;
  Part other{"other", 0.0, ""};
  int small = 0;
  for (const Part& part : bar.parts) {
    if (!std::isfinite(part.value) || !(part.value > 0.0)) continue;
    if (part.value >= smallest_share && part.name != other.name) {
      parts.push_back(part);
    } else {
      other.value += part.value;
      ++small;
    }
  }
  other.note = fmt::format("{} in parts of less than 1%: {}", small, percent_text(other.value));
  if (small > 0) parts.push_back(other);
  return parts;
}

// Names in the order in which they first come; the same one has one number and colour in every bar.
class Names {
 public:
  std::size_t place_of(const std::string& name) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found != names_.end()) return static_cast<std::size_t>(found - names_.begin());
    names_.push_back(name);
    return names_.size() - 1;
  }

 private:
  std::vector<std::string> names_;
};

std::string_view colour_of(const Part& part, std::size_t place) {
  return part.name == "other" ? other_colour : colours[place % std::size(colours)];
}

void draw_parts(Canvas& canvas, const std::vector<Part>& parts, Names& names, double y) {
  double whole = 0.0;
  for (const Part& part : parts) whole += part.value;
  const double scale = (rows_right - rows_left) / std::max(whole, 1.0);
  double x = rows_left;
  for (const Part& part : parts) {
    const std::size_t place = names.place_of(part.name);
    const std::string_view colour = colour_of(part, place);
    const double width = part.value * scale;
    canvas.shape("rect",
                 {{"class", "c-part"}, {"fill", colour}, {"x", x}, {"y", y}, {"width", width}, {"height", stack_height}},
                 cut(part.note.empty() ? part.name + ": " + percent_text(part.value) : part.note, 300));
    const std::string text = std::to_string(place + 1);
    if (text_width(text, text_size) + 4.0 <= width)
      canvas.words("text", text,
                   {{"fill", text_on(colour)}, {"x", x + width / 2.0}, {"y", y + 18.0}, {"text-anchor", "middle"}});
    x += width;
  }
}

double draw_names(Canvas& canvas, const std::vector<Part>& parts, Names& names, double y) {
  double x = rows_left;
  y += line_height;
  for (const Part& part : parts) {
    const std::size_t place = names.place_of(part.name);
    const std::string tail = " " + percent_text(part.value);
    const std::string number = std::to_string(place + 1);
    const double swatch = text_width(number, text_size) + 8.0;
    const double most = rows_right - rows_left - swatch - 6.0 - text_width(tail, text_size);
    const std::string text = shortened(part.name, most, text_size) + tail;
    const double width = swatch + 6.0 + text_width(text, text_size);
    if (x > rows_left && x + width > rows_right) {
      x = rows_left;
      y += line_height + 3.0;
    }
    const std::string_view colour = colour_of(part, place);
    canvas.shape("rect", {{"fill", colour}, {"x", x}, {"y", y - 13.0}, {"width", swatch}, {"height", 17.0}});
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
  double y = drawing.top();
  bool drawn = false;
  for (const StackedBar& bar : chart.bars) {
    const std::vector<Part> parts = merged(bar);
    if (parts.empty()) continue;
    drawn = true;
    if (!bar.label.empty()) y = draw_row_words(drawing.canvas(), y, bar.label, "", "c-bold");
    draw_parts(drawing.canvas(), parts, names, y);
    y = draw_names(drawing.canvas(), parts, names, y + stack_height + 4.0) + 14.0;
  }
  return drawn ? drawing.finished(y) : "";
}

}  // namespace gpubench::chart
