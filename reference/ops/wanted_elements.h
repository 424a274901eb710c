// How textbooks walk over wanted elements: neighbours are read as one run, a chunk at a time, so that full checks run
// at the speed of a decoded stream and sparse ones touch only what they need.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "harness/core/tensor.h"
#include "reference/ops/definition.h"

namespace gpubench {

/// out[i] = element offset + wanted[i] of the view. `wanted` is ascending.
void gather(const TensorView& view, std::span<const std::int64_t> wanted, std::int64_t offset, std::span<double> out);

/// Calls consume(first element, values) for all elements of the view, in order, in chunks.
template <class Consume>
void for_each_chunk(const TensorView& view, Consume consume) {
  std::array<double, 1024> buffer;
  const std::int64_t count = view.shape().elements();
  for (std::int64_t first = 0; first < count; first += static_cast<std::int64_t>(buffer.size())) {
    const auto size = std::min<std::int64_t>(static_cast<std::int64_t>(buffer.size()), count - first);
    const std::span<double> chunk(buffer.data(), static_cast<std::size_t>(size));
    view.read(first, chunk);
    consume(first, std::span<const double>(chunk));
  }
}

/// judged[i] = formula(wanted[i], {elements wanted[i] of the views}).
template <std::size_t views, class Formula>
void judge_elements(const std::array<TensorView, views>& inputs, std::span<const std::int64_t> wanted,
                    std::span<Expected> judged, Formula formula) {
  constexpr std::size_t chunk = 512;
  std::array<std::array<double, chunk>, views> values;
  for (std::size_t first = 0; first < wanted.size(); first += chunk) {
    const std::size_t size = std::min(chunk, wanted.size() - first);
    for (std::size_t v = 0; v < views; ++v) {
      gather(inputs[v], wanted.subspan(first, size), 0, std::span(values[v]).first(size));
    }
    for (std::size_t i = 0; i < size; ++i) {
      std::array<double, views> element;
      for (std::size_t v = 0; v < views; ++v) element[v] = values[v][i];
      judged[first + i] = formula(wanted[first + i], element);
    }
  }
}

/// Units of one element each. Landmarks: the first and last element, and the ends of the first and last row.
[[nodiscard]] CheckUnits element_units(const Shape& shape, double flop_per_unit);

/// Rows of x as units of `elements` elements each: one of each kind that the norm fills give, and the last, are always
/// judged.
[[nodiscard]] CheckUnits norm_row_units(const Shape& x, std::int64_t elements, double flop_per_element);

}  // namespace gpubench
