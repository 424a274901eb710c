// The names of the series, below the data, in as many lines as they need.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/chart/canvas.h"

namespace gpubench::chart {

struct LegendEntry {
  std::size_t series = 0;  ///< says colour, marker and dash
  std::string name;
  bool line = false;  ///< a line with its dash, beside the marker
};

/// Draws from y on and returns where it ends. Each entry is a group of class c-key with its data-series.
double draw_legend(Canvas& canvas, const std::vector<LegendEntry>& entries, double y);

/// One line that says what hollow marks are. Returns where it ends.
double draw_doubtful_key(Canvas& canvas, double y);

}  // namespace gpubench::chart
