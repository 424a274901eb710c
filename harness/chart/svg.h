// Charts drawn as SVG: one look for the report page, results and the README, in light and in dark.
//
// Colours are Okabe and Ito's (jfly.uni-koeln.de/color), each with a marker and a dash of its own. Every drawing has
// role="img", a title and a description. Nothing in it moves, loads or runs.
#pragma once

#include <string>

#include "harness/chart/chart.h"

namespace gpubench::chart {

/// Where the drawing will stand.
enum class Placement {
  file,  ///< a file of its own: carries chart_style(), an XML namespace and a width in pixels
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
