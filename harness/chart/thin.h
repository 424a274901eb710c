// Too many points make a page that nobody can load. Of those that are too many, the ones that show least go.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "harness/chart/chart.h"

namespace gpubench::chart {

/// More points than this in one drawing are thinned.
constexpr std::size_t most_points = 10000;

/// Leaves at most `most` points in all: each series keeps its share, in equal stretches of its order, and of each
/// stretch the lowest and the highest; a series' first and last points stay. The same points for the same data.
/// Series of four points or fewer stay as they are, even where there are so many of them that `most` is exceeded.
/// Returns how many points there were.
std::size_t thin(std::vector<Series>& series, std::size_t most = most_points);

/// Which of `values` stay where at most `most` do, as places in ascending order: as thin() does it, of at least four.
[[nodiscard]] std::vector<std::size_t> kept(const std::vector<double>& values, std::size_t most);

/// What a description says of it.
[[nodiscard]] std::string thinned_sentence(std::size_t points);

}  // namespace gpubench::chart
