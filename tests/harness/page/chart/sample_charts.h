// A chart of each kind, for golden files and for viewing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/page/chart/chart.h"

namespace gpubench::chart {

PlotChart throughput_sample();
PlotChart roofline_sample();
BarChart precision_sample();
StackChart step_sample();
HeatMap budget_sample();
ForestChart comparison_sample();

struct NamedDrawing {
  std::string name;
  std::string svg;
};
std::vector<NamedDrawing> sample_drawings(Placement placement);

}  // namespace gpubench::chart

// Well-formedness of XML as used in drawings, independent of the writer: elements, attributes in double quotes, text,
// the five named entities; no comments, CDATA or processing instructions.
namespace gpubench {

/// "" if well-formed; else the error and its place.
std::string not_well_formed(std::string_view xml);

}  // namespace gpubench
