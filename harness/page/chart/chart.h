// Charts as data, and their drawing as SVG, with one look for report page and results, in light and dark.
//
// Colours are Okabe and Ito's (jfly.uni-koeln.de/color), each with a marker and a dash. Every drawing has role="img", a
// title and a description, and neither animation, scripts nor links. All text is untrusted (case ids, device names) and
// escaped when drawn. Values that are not finite, and values up to zero on a logarithmic axis, are not drawn.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpubench::chart {

enum class Scale { linear, log2, log10 };

enum class TickLabels {
  plain,    ///< 1, 2.5, 1000
  si,       ///< one prefix for all labels, shown with the unit: 100, 200 (GFLOP/s). A prefix per label, 1k, 2.5M, for
            ///< units without prefix and over more than eight decades
  bytes,    ///< 8 KiB, 2 MiB: powers of 1024
  percent,  ///< of a fraction: 0.5 -> 50%
  time_ns   ///< of nanoseconds: 850 ns, 1.2 ms
};

struct Axis {
  std::string title{};
  Scale scale = Scale::linear;
  TickLabels labels = TickLabels::plain;
  std::string unit{};  ///< after the title: "FLOP/s" -> "rate (GFLOP/s)"
  std::optional<double> low{};
  std::optional<double> high{};
};

struct Point {
  double x = 0.0;
  double y = 0.0;
  std::optional<double> low{};
  std::optional<double> high{};
  std::string note;       ///< shown on hover and read out: "m=512 bf16: 1.2 TFLOP/s"
  bool doubtful = false;  ///< drawn hollow, with a line below the chart that explains it
};

enum class Mark {
  line,    ///< joined points with markers; intervals as a band
  scatter  ///< markers alone; intervals as whiskers
};

/// Colour, marker and dash differ between series, for black and white.
struct Series {
  std::string name;
  Mark mark = Mark::line;
  std::vector<Point> points;
};

/// A line that is not data: a peak, an ideal, a limit. Dashed, labelled at its end, not in the legend.
struct Guide {
  std::string label;
  std::vector<Point> points;  ///< two or more; one: a horizontal line at its y over the whole width
};

struct PlotChart {
  std::string title;
  std::string description;  ///< one or two sentences for screen readers
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::vector<Guide> guides;
};

struct Bar {
  std::string label;
  double value = 0.0;
  std::optional<double> low{};
  std::optional<double> high{};
  std::optional<double> limit{};  ///< upper limit: an outline behind the bar
  std::string text;               ///< after the bar: "743 TFLOP/s, 75%"
  std::string note;
  bool doubtful = false;
};

struct BarGroup {
  std::string title;
  std::vector<Bar> bars;
};

/// Horizontal bars from 0, in groups. The height follows from the content.
struct BarChart {
  std::string title;
  std::string description;
  Axis value;
  std::vector<BarGroup> groups;
};

struct Part {
  std::string name;
  double value = 0.0;  ///< a share of 1
  std::string note;
};

/// Bars divided into parts. The eight names with the largest totals get a colour each; other names and parts below 1%
/// become "other". "left over" is the unexplained rest, in grey.
struct StackedBar {
  std::string label;
  std::vector<Part> parts;
};
struct StackChart {
  std::string title;
  std::string description;
  std::vector<StackedBar> bars;
};

struct HeatCell {
  std::string text;     ///< empty: no value
  double shade = 0.0;   ///< 0 to 1
  bool marked = false;  ///< boxed and crossed: above the limit
  std::string note;
};

/// Shaded, labelled cells. Text is black or white, by contrast.
struct HeatMap {
  std::string title;
  std::string description;
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::vector<HeatCell>> cells;
};

struct ForestRow {
  std::string label;
  double ratio = 1.0;
  double low = 1.0;
  double high = 1.0;
  std::string word;      ///< FASTER, SAME, ...
  bool summary = false;  ///< a mean: drawn as a diamond
};

/// Ratios with intervals on a log axis around 1, a row each.
struct ForestChart {
  std::string title;
  std::string description;
  std::string axis_title;
  std::vector<ForestRow> rows;
};

enum class Placement {
  file,  ///< carries chart_style(), an XML namespace and a width in pixels
  page   ///< the page holds chart_style() once; scales to its column
};

/// The style sheet of all drawings; classes start with "c-". Follows prefers-color-scheme.
[[nodiscard]] std::string chart_style();

/// The chart as an <svg> element, or "" if there is nothing to draw. `id` (letters, digits and dashes) is the prefix of
/// its ids; throws std::invalid_argument for another. Groups of class c-series, and c-key in the legend, have the index
/// of their series as data-series; the class c-hidden hides one.
[[nodiscard]] std::string svg(const PlotChart& chart, const std::string& id, Placement placement);
[[nodiscard]] std::string svg(const BarChart& chart, const std::string& id, Placement placement);
[[nodiscard]] std::string svg(const StackChart& chart, const std::string& id, Placement placement);
[[nodiscard]] std::string svg(const HeatMap& chart, const std::string& id, Placement placement);
[[nodiscard]] std::string svg(const ForestChart& chart, const std::string& id, Placement placement);

}  // namespace gpubench::chart
