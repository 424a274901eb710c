#include "harness/chart/thin.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/report/quantity.h"

namespace gpubench::chart {

std::vector<std::size_t> kept(const std::vector<double>& values, std::size_t most) {
  most = std::max<std::size_t>(most, 4);
  std::vector<std::size_t> places;
  const std::size_t count = values.size();
  if (count <= most) {
    for (std::size_t i = 0; i < count; ++i) places.push_back(i);
    return places;
  }
  const std::size_t stretches = (most - 2) / 2;
  const auto value = [&](std::size_t i) { return values[i]; };
  places.push_back(0);
  for (std::size_t s = 0; s < stretches; ++s) {  // of what is between the first and the last
    const std::size_t first = 1 + s * (count - 2) / stretches;
    const std::size_t end = 1 + (s + 1) * (count - 2) / stretches;
    std::size_t lowest = first;
    std::size_t highest = first;
    for (std::size_t i = first; i < end; ++i) {
      if (value(i) < value(lowest)) lowest = i;
      if (value(i) > value(highest)) highest = i;
    }
    places.push_back(std::min(lowest, highest));
    if (lowest != highest) places.push_back(std::max(lowest, highest));
  }
  places.push_back(count - 1);
  return places;
}

std::size_t thin(std::vector<Series>& series, std::size_t most) {
  std::size_t total = 0;
  for (const Series& s : series) total += s.points.size();
  if (total <= most) return total;
  for (Series& s : series) {
    std::vector<double> values;
    for (const Point& point : s.points) values.push_back(point.y);
    const double share = static_cast<double>(s.points.size()) / static_cast<double>(total);
    std::vector<Point> points;
    for (const std::size_t place : kept(values, static_cast<std::size_t>(share * static_cast<double>(most))))
      points.push_back(std::move(s.points[place]));
    s.points = std::move(points);
  }
  return total;
}

std::string thinned_sentence(std::size_t points) {
  return fmt::format("Of {} points about {} are drawn; the highest and lowest of each stretch are among them.",
                     format_count(static_cast<std::int64_t>(points)), format_count(most_points));
}

}  // namespace gpubench::chart
