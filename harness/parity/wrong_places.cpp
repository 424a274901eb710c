#include "harness/parity/wrong_places.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

namespace gpubench {
namespace {

constexpr std::int64_t most_bands = 32;

// The indices along one axis.
struct Span {
  std::int64_t low = std::numeric_limits<std::int64_t>::max();
  std::int64_t high = 0;
  std::int64_t step = 0;  // greatest common divisor of the distances from the first that was seen
  std::int64_t first = -1;

  void add(std::int64_t index) {
    if (first < 0) first = index;
    low = std::min(low, index);
    high = std::max(high, index);
    step = std::gcd(step, index > first ? index - first : first - index);
  }
  [[nodiscard]] bool whole(std::int64_t extent) const { return low == 0 && high == extent - 1 && step <= 1; }
  [[nodiscard]] std::string text() const {
    if (low == high) return fmt::format("{}", low);
    const std::string range = fmt::format("{}-{}", low, high);
    return step > 1 && high - low > step ? fmt::format("{} in steps of {}", range, step) : range;
  }
};

std::string words(const Shape& shape, std::span<const Span> spans, std::size_t wrong) {
  std::string box;
  bool whole = true;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const Span& span = spans[static_cast<std::size_t>(axis)];
    whole = whole && span.whole(shape[axis]);
    box += (axis == 0 ? "" : ", ") + span.text();
  }
  if (wrong == 1) return fmt::format("1 at [{}]", box);
  return whole ? "spread over all of it" : fmt::format("all {} are in [{}]", wrong, box);
}

}  // namespace

std::vector<std::int64_t> multi_index(const Shape& shape, std::int64_t linear) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = linear % shape[axis];
    linear /= shape[axis];
  }
  return index;
}

WrongPlaces wrong_places(const TensorSpec& spec, std::span<const std::int64_t> wrong) {
  const Shape& shape = spec.shape;
  const std::int64_t columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  const std::int64_t rows = shape.elements() / std::max<std::int64_t>(1, columns);
  WrongPlaces places;
  places.tensor = spec.name;
  places.rows = rows;
  places.columns = columns;
  const std::int64_t row_bands = std::min(rows, most_bands), column_bands = std::min(columns, most_bands);
  places.column_bands = column_bands;
  places.counts.assign(static_cast<std::size_t>(row_bands * column_bands), 0);
  std::vector<Span> spans(static_cast<std::size_t>(shape.rank()));
  for (const std::int64_t linear : wrong) {
    const std::vector<std::int64_t> index = multi_index(shape, linear);
    for (std::size_t axis = 0; axis < spans.size(); ++axis) spans[axis].add(index[axis]);
    const std::int64_t row = linear / columns * row_bands / rows;
    const std::int64_t column = linear % columns * column_bands / columns;
    ++places.counts[static_cast<std::size_t>(row * column_bands + column)];
  }
  places.words = words(shape, spans, wrong.size());
  return places;
}

}  // namespace gpubench
