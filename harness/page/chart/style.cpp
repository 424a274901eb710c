#include "harness/page/chart/style.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>

#include "harness/core/text/visible_text.h"
#include "harness/page/chart/chart.h"

namespace gpubench::chart {
namespace {

struct Role {
  std::string_view name;
  std::string_view light;
  std::string_view dark;
};

constexpr Role roles[] = {
    {"paper", "#ffffff", "#14181d"}, {"ink", "#1b1f24", "#e8ecf1"},   {"muted", "#545c66", "#adb6c0"},
    {"grid", "#dde1e6", "#333b44"},  {"limit", "#f1f3f6", "#1d232a"},
};

// A plain value for programs without custom properties (librsvg), then the one that follows the color scheme.
std::string coloured(std::string_view property, std::string_view role) {
  const auto* found = std::find_if(std::begin(roles), std::end(roles), [&](const Role& r) { return r.name == role; });
  return fmt::format("{0}:{1};{0}:var(--c-{2});", property, found->light, role);
}

std::string properties(bool dark) {
  std::string text;
  for (const Role& role : roles) text += fmt::format("--c-{}:{};", role.name, dark ? role.dark : role.light);
  return text;
}

double linear(int channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

// Relative luminance, WCAG 2.1.
double luminance(std::string_view colour) {
  const auto channel = [&](std::size_t at) {
    return linear(std::stoi(std::string(colour.substr(at, 2)), nullptr, 16));
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

}  // namespace

std::string_view series_colour(std::size_t series) { return series_colours[series % std::size(series_colours)]; }

std::string_view series_dash(std::size_t series) { return series_dashes[series % std::size(series_dashes)]; }

// Contrast is (L + 0.05) / 0.05 with black and 1.05 / (L + 0.05) with white; equal, at 4.58, for L + 0.05 =
// sqrt(0.0525).
std::string_view text_on(std::string_view colour) {
  const double l = luminance(colour) + 0.05;
  return l * l >= 0.0525 ? "#000000" : "#ffffff";
}

std::string shade_colour(double shade) {
  constexpr std::array<std::array<double, 3>, 3> stops{{{247, 250, 253}, {86, 148, 204}, {8, 40, 92}}};
  const double at = 2.0 * (shade > 0.0 ? std::min(shade, 1.0) : 0.0);
  const std::size_t first = at < 1.0 ? 0 : 1;
  std::array<int, 3> c{};
  for (std::size_t i = 0; i < 3; ++i) {
    const double mix = stops[first][i] + (at - static_cast<double>(first)) * (stops[first + 1][i] - stops[first][i]);
    c[i] = static_cast<int>(std::lround(mix));
  }
  return fmt::format("#{:02x}{:02x}{:02x}", c[0], c[1], c[2]);
}

std::string chart_style() {
  std::string css;
  css += ".c-chart{" + properties(false) + coloured("color", "ink") +
         "font-family:Arial,Helvetica,'Liberation Sans',sans-serif;font-size:14px;display:block;width:100%;"
         "max-width:520px;height:auto}\n";
  css += "@media screen and (prefers-color-scheme:dark){.c-chart{" + properties(true) + "}}\n";
  css += ".c-paper{" + coloured("fill", "paper") + "}\n";
  css += ".c-title{font-size:16px;font-weight:bold;" + coloured("fill", "ink") + "}\n";
  css += ".c-text{" + coloured("fill", "ink") + "}\n";
  css += ".c-bold{font-weight:bold;" + coloured("fill", "ink") + "}\n";
  css += ".c-muted{" + coloured("fill", "muted") + "}\n";
  // A paper-coloured rim keeps words over lines readable.
  css += ".c-over{" + coloured("fill", "ink") + coloured("stroke", "paper") +
         "stroke-width:4px;stroke-linejoin:round;paint-order:stroke}\n";
  css += ".c-grid{fill:none;" + coloured("stroke", "grid") + "}\n";
  css += ".c-axis{fill:none;" + coloured("stroke", "muted") + "}\n";
  css += ".c-guide{fill:none;stroke-width:1.5px;stroke-dasharray:6 4;" + coloured("stroke", "muted") + "}\n";
  css += ".c-line{fill:none;stroke-width:2px;stroke-linejoin:round}\n";
  css += ".c-mark{stroke-width:.8px;" + coloured("stroke", "ink") + "}\n";
  css += ".c-bar{stroke:none}\n";
  css += ".c-doubtful{stroke-width:1.6px;stroke-dasharray:2.4 1.6;" + coloured("fill", "paper") + "}\n";
  css += ".c-whisker{fill:none;stroke-width:1.5px;" + coloured("stroke", "ink") + "}\n";
  css += ".c-range{stroke:none;fill-opacity:.2}\n";
  css += ".c-part{stroke-width:1.2px;" + coloured("stroke", "paper") + "}\n";
  css += ".c-limit{stroke-dasharray:3 2;" + coloured("fill", "limit") + coloured("stroke", "muted") + "}\n";
  css += ".c-cell{" + coloured("stroke", "paper") + "}\n";
  css += ".c-over-limit{fill:none;stroke:#d55e00;stroke-width:3px}\n";
  css += ".c-cross{fill:none;stroke-width:2px}\n";
  css += ".c-hidden{display:none}\n";
  return css;
}

namespace {

constexpr std::string_view ellipsis = "\u2026";

std::size_t bytes_of_first(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return std::min(bytes, text.size());
}

// In font sizes, from Arial's metrics rounded up; East Asian characters take a full square.
double width_of(std::string_view character) {
  if (character.size() >= 3) return character == ellipsis ? 1.0 : 1.05;
  if (character.size() == 2) return 0.75;
  const char c = character.front();
  if (std::string_view("ijl.,:;'|!").find(c) != std::string_view::npos) return 0.29;
  if (std::string_view(" ftr()[]/\\I-\"`").find(c) != std::string_view::npos) return 0.36;
  if (std::string_view("mMW@%w").find(c) != std::string_view::npos) return 0.9;
  if (c >= 'A' && c <= 'Z') return 0.72;
  return 0.585;
}

// Bytes of the longest prefix of `text` up to this width.
std::size_t fitting_bytes(std::string_view text, double width) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const std::string_view next = text.substr(bytes, bytes_of_first(text.substr(bytes)));
    width -= width_of(next);
    if (width < 0.0) break;
    bytes += next.size();
  }
  return bytes;
}

std::string shortened_visible(std::string_view text, double width, double font_size) {
  if (text_width(text, font_size) <= width) return std::string(text);
  const std::size_t bytes = fitting_bytes(text, width / font_size - width_of(ellipsis));
  return std::string(text.substr(0, bytes)) + std::string(ellipsis);
}

}  // namespace

double text_width(std::string_view text, double font_size) {
  double width = 0.0;
  while (!text.empty()) {
    const std::size_t bytes = bytes_of_first(text);
    width += width_of(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return width * font_size;
}

std::string shortened(std::string_view text, double width, double font_size) {
  return shortened_visible(visible(text), width, font_size);
}

std::string cut(std::string_view text, std::size_t characters) {
  const std::string shown = visible(text);
  std::size_t bytes = 0;
  for (std::size_t count = 0; bytes < shown.size(); ++count) {
    if (count + 1 == characters && columns(std::string_view(shown).substr(bytes)) > 1)
      return shown.substr(0, bytes) + std::string(ellipsis);
    bytes += bytes_of_first(std::string_view(shown).substr(bytes));
  }
  return shown;
}

std::vector<std::string> wrapped(std::string_view text, double width, double font_size, int lines) {
  const std::string shown = visible(text);
  std::string_view rest = shown;
  std::vector<std::string> found;
  while (!rest.empty()) {
    const std::size_t fit = fitting_bytes(rest, width / font_size);
    if (fit == rest.size() || static_cast<int>(found.size()) + 1 == lines || fit == 0) {
      found.push_back(shortened_visible(rest, width, font_size));
      break;
    }
    const std::size_t after = rest.substr(0, fit).find_last_of(" /,;_");
    const std::size_t end = after == std::string_view::npos ? fit : after + 1;
    found.emplace_back(rest.substr(0, end));
    if (found.back().back() == ' ') found.back().pop_back();
    rest.remove_prefix(end);
  }
  return found;
}

namespace {

struct Shape {
  double dx;
  double dy;
  std::string_view outline;
};

// Equal areas, so that no marker stands out.
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
  const double least = 5.4;  // visible for narrow intervals, too
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
    // Only the sample has the colour of the group.
    canvas.words("text", name, {{"class", "c-text"}, {"stroke", "none"}, {"x", x + swatch + 6.0}, {"y", y}});
    canvas.close();
    x += width + gap;
  }
  return entries.empty() ? y - line_height : y + 4.0;
}

double draw_unreliable_key(Canvas& canvas, double y) {
  y += line_height;
  canvas.open("g", {{"stroke", "currentColor"}});
  draw_marker(canvas, 0, legend_margin + swatch / 2.0, y - 5.0, {}, true);
  canvas.close();
  canvas.text(legend_margin + swatch + 6.0, y, "hollow: the timing is unreliable", "c-muted");
  return y + 4.0;
}

}  // namespace gpubench::chart
