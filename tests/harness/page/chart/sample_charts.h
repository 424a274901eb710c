// One chart of each kind, as reports draw them: for the golden files, and for eyes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/page/chart/chart.h"

namespace gpubench::chart {

PlotChart throughput_sample();  ///< lines with ranges, bytes below, a peak
PlotChart roofline_sample();    ///< scatter with whiskers, log-log, two guides
BarChart precision_sample();
StackChart step_sample();
HeatMap budget_sample();
ForestChart comparison_sample();

struct NamedDrawing {
  std::string name;  ///< of its golden file, without .svg
  std::string svg;
};
std::vector<NamedDrawing> sample_drawings(Placement placement);

}  // namespace gpubench::chart

// Whether text is well-formed XML, as far as our drawings use it: a check of the tests' own, which knows nothing of the
// writer. Elements, attributes in double quotes, text, the five named entities; no comment, no CDATA, no processing.
namespace gpubench {

/// "" where it is; else what is wrong and where.
std::string not_well_formed(std::string_view xml);

}  // namespace gpubench
