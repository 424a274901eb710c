#include "reference/ops/wanted_elements.h"

#include <set>

namespace gpubench {

void gather(const TensorView& view, std::span<const std::int64_t> wanted, std::int64_t offset, std::span<double> out) {
  std::size_t first = 0;
  while (first < wanted.size()) {
    std::size_t last = first + 1;
    while (last < wanted.size() && wanted[last] == wanted[last - 1] + 1) ++last;
    view.read(offset + wanted[first], out.subspan(first, last - first));
    first = last;
  }
}

CheckUnits element_units(const Shape& shape, double flop_per_unit) {
  CheckUnits units;
  units.count = shape.elements();
  units.flop_per_unit = flop_per_unit;
  if (units.count == 0) return units;
  const std::int64_t row = shape.rank() == 0 ? 1 : shape[-1];
  const std::set<std::int64_t> ends{0, row - 1, std::min(row, units.count - 1), units.count - row, units.count - 1};
  units.landmarks.assign(ends.begin(), ends.end());
  return units;
}

namespace {

// Norm fills give rows of eight kinds in turn (norm_rows): one of each is always judged, and the last row.
std::vector<std::int64_t> row_landmarks(std::int64_t rows) {
  std::set<std::int64_t> units;
  for (std::int64_t row = 0; row < std::min<std::int64_t>(rows, 8); ++row) units.insert(row);
  if (rows > 0) units.insert(rows - 1);
  return {units.begin(), units.end()};
}

}  // namespace

CheckUnits norm_row_units(const Shape& x, std::int64_t elements, double flop_per_element) {
  const std::int64_t rows = x.elements() / x[-1];
  return {rows, elements, flop_per_element * static_cast<double>(x[-1]), row_landmarks(rows)};
}

}  // namespace gpubench
