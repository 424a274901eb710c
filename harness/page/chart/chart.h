// Charts as data, and their drawing as SVG: one look for the report page and results, in light and in dark.
//
// Colours are Okabe and Ito's (jfly.uni-koeln.de/color), each with its own marker and dash. Every drawing has
// role="img", a title and a description; nothing in it moves, loads or runs. All text is untrusted (case ids, device
// names): it is escaped where it is drawn, never before. Values that are not finite, and values not above zero on a
// logarithmic axis, are not drawn.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace gpubench::chart {

enum class Scale { linear, log2, log10 };

/// How the numbers along an axis are written.
enum class TickLabels {
  plain,  ///< 1, 2.5, 1000
  si,     ///< one prefix for all labels, shown with the unit: 100, 200 (GFLOP/s). Each label has its own, 1k, 2.5M, for
          ///< units that take none and over more than eight decades
  bytes,  ///< 8 KiB, 2 MiB: powers of 1024
  percent,  ///< of a fraction: 0.5 -> 50%
  time_ns   ///< of nanoseconds: 850 ns, 1.2 ms
};

struct Axis {
  std::string title{};
  Scale scale = Scale::linear;
  TickLabels labels = TickLabels::plain;
  std::string unit{};            ///< shown after the title: "FLOP/s" -> "rate (GFLOP/s)"
  std::optional<double> low{};   ///< where the axis starts; absent: with the data
  std::optional<double> high{};  ///< where it ends
};

struct Point {
  double x = 0.0;
  double y = 0.0;
  std::optional<double> low{};  ///< of an interval around y
  std::optional<double> high{};
  std::string note;       ///< shown on hover and read out: "m=512 bf16: 1.2 TFLOP/s"
  bool doubtful = false;  ///< drawn hollow, and a line below the chart says what that means
};

enum class Mark {
  line,    ///< points joined, each with a marker; an interval as a band behind them
  scatter  ///< markers alone; an interval as a whisker
};

/// One colour, one marker and one dash, so that series differ in black and white as well.
struct Series {
  std::string name;
  Mark mark = Mark::line;
  std::vector<Point> points;
};

/// A line that is not data: a peak, an ideal, a limit. Drawn dashed, labelled at its end, never in the legend.
struct Guide {
  std::string label;
  std::vector<Point> points;  ///< two or more; one: a horizontal line at its y, over the whole width
};

/// Lines and scatters over two axes.
struct PlotChart {
  std::string title;
  std::string description;  ///< one or two sentences for readers who cannot see the picture
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::vector<Guide> guides;
};

struct Bar {
  std::string label;
  double value = 0.0;
  std::optional<double> low{};  ///< of an interval
  std::optional<double> high{};
  std::optional<double> limit{};  ///< its upper limit: an outline behind the bar
  std::string text;               ///< after the bar: "743 TFLOP/s, 75%"
  std::string note;
  bool doubtful = false;  ///< as of a point
};

struct BarGroup {
  std::string title;
  std::vector<Bar> bars;
};

/// Horizontal bars from 0, one below the other, in groups. As tall as it needs to be.
struct BarChart {
  std::string title;
  std::string description;
  Axis value;  ///< linear, or log10 where low is given
  std::vector<BarGroup> groups;
};

struct Part {
  std::string name;
  double value = 0.0;  ///< a share of 1
  std::string note;
};

/// One bar divided into parts, for each of several wholes. The eight names with the largest totals have a colour each;
/// other names, and parts below 1%, go into "other". "left over" is what no part explains, and grey.
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
  bool marked = false;  ///< boxed and crossed: over the limit
  std::string note;
};

/// Rows by columns of shaded, labelled cells; text is black or white, whichever reads better on the shade.
struct HeatMap {
  std::string title;
  std::string description;
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<std::vector<HeatCell>> cells;  ///< one vector per row
};

struct ForestRow {
  std::string label;
  double ratio = 1.0;
  double low = 1.0;
  double high = 1.0;
  std::string word;      ///< FASTER, SAME, ...
  bool summary = false;  ///< a mean over others: a diamond
};

/// Ratios with their intervals on a log axis around a line at 1, one row each.
struct ForestChart {
  std::string title;
  std::string description;
  std::string axis_title;
  std::vector<ForestRow> rows;
};

/// Where the drawing will be shown.
enum class Placement {
  file,  ///< a separate file: carries chart_style(), an XML namespace and a width in pixels
  page   ///< inside an HTML page, which holds chart_style() once and lets it scale to its column
};

/// The style sheet that all drawings share; classes start with "c-". Follows prefers-color-scheme.
[[nodiscard]] std::string chart_style();

/// The chart as one <svg> element. `id` (letters, digits and dashes) makes the ids within it unique on a page.
/// A chart without anything to draw is the empty string. Groups of class c-series, and c-key in the legend, carry the
/// place of their series in the chart as data-series; the class c-hidden hides one. Throws std::invalid_argument for
/// another id.
[[nodiscard]] std::string svg(const PlotChart& chart, const std::string& id, Placement placement);
[[nodiscard]] std::string svg(const BarChart& chart, const std::string& id, Placement placement);
[[nodiscard]] std::string svg(const StackChart& chart, const std::string& id, Placement placement);
[[nodiscard]] std::string svg(const HeatMap& chart, const std::string& id, Placement placement);
[[nodiscard]] std::string svg(const ForestChart& chart, const std::string& id, Placement placement);

}  // namespace gpubench::chart
